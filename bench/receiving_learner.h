// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "learner/collect/collector.h"
#include "learner/collect/policy_publisher.h"
#include "learner/collect/service.h"
#include "learner/report/metrics.h"
#include "member/coordinator_client.h"
#include "prometheus/registry.h"
#include "skein/v1/config.pb.h"

namespace skein {

// A learner that receives fragments but never trains: the real service, collector and publisher, which open the next
// iteration as soon as one is complete. One policy, version 1.
//   LearnerService -> Collector -> WaitForIteration -> OpenIteration -> ...
// Not thread-safe.
class ReceivingLearner {
 public:
  struct Options {
    FragmentShape shape;  // Of one fragment.
    uint32_t num_envs = 1;
    uint32_t fragments_per_group = 1;  // Of one iteration; unused with `async`, which has its own.
    std::optional<Collector::Async> async;
    v1::DirectionsConfig directions;                   // As in Collector.
    std::shared_ptr<const v1::PolicySnapshot> policy;  // Null: no policy is published.
  };
  // Listens on a free port of the loopback. Errors as StartGrpcServer.
  static absl::StatusOr<std::unique_ptr<ReceivingLearner>> Start(const Options& options);
  ~ReceivingLearner();

  int port() const { return port_; }
  // Serves a run with this id from now on; until then callers are told to try again. Call once.
  void Serve(const std::string& run_id);

  // Totals over whole iterations.
  struct Received {
    uint64_t iterations = 0;
    uint64_t batches = 0;
    uint64_t env_steps = 0;
    uint64_t bytes = 0;  // Of the messages with these batches.
    absl::Duration elapsed;
    v1::StageSeconds actor_seconds;
    std::map<std::string, double> learner_seconds;  // Of stages receive and admit.
  };
  // Opens one iteration after the other until `enough` returns true for the totals of whole iterations. Then no ticket
  // is open any more, except in mode async. `healthy` is polled; its error ends the call. Unavailable: no iteration was
  // completed for 30 s, or for 10 minutes while actors are connected.
  absl::StatusOr<Received> Receive(const std::function<bool(const Received&)>& enough,
                                   const std::function<absl::Status()>& healthy);

 private:
  explicit ReceivingLearner(const Options& options);
  uint64_t ReceivedBytes() const;
  uint64_t StepsOf(const Collector::Iteration& iteration) const;
  // Opens an iteration and waits until it is complete.
  absl::StatusOr<Collector::Iteration> NextIteration(const std::function<absl::Status()>& healthy);

  const Options options_;
  const uint64_t iteration_batches_, iteration_steps_;
  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  PolicyPublisher publisher_{&metrics_};
  std::unique_ptr<Collector> collector_;
  LearnerService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace skein
