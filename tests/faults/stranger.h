// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "member/coordinator_client.h"
#include "skein/v1/learner_service.pb.h"
#include "tests/integration/cluster.h"
#include "tests/testing/collect_stream.h"

namespace skein {

// host:port that a process of ours has written it listens on.
std::string CoordinatorAddress(Cluster* cluster);
std::string LearnerAddress(Cluster* cluster);
// Where it listens, once it welcomes actors.
std::string ServingLearner(Cluster* cluster);
// A process's own /metrics: the value of that series, e.g. "skein_learner_batches_total{result=\"rejected\"}"; 0 if
// there is none. `output` has the line that says where they are.
double MetricOf(const std::string& output, const std::string& series);
// Resident memory of a process in bytes.
size_t ResidentBytes(int pid);

// Somebody who speaks to a learner by hand: whatever bytes, of whatever size. One stream at a time; a call that hangs
// ends after a minute.
class Stranger {
 public:
  // With a coordinator it joins there as an actor, and is a member while it exists; without one the learner sends it
  // away once it has asked.
  explicit Stranger(const std::string& learner_address, const std::string& coordinator_address = "");
  ~Stranger();

  // The hello that a learner of `Cluster` welcomes, for its generation of that number, from 1. It asks for no tickets.
  v1::CollectRequest Hello(uint64_t generation) const;
  // Begins a stream; one that is open already breaks. What Send and SendBytes could not send, the stream's end tells
  // why.
  void Open();
  void Send(const v1::CollectRequest& request) { SendBytes(FrameHead(request)); }
  void SendBytes(const std::string& bytes);
  std::optional<v1::CollectResponse> Read();
  // Reads on until the stream has ended.
  grpc::Status End();
  // Begins a stream and is welcomed.
  bool Enter(uint64_t generation);

 private:
  void Leave();

  std::unique_ptr<CoordinatorClient> member_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<CollectStream> stream_;
};

}  // namespace skein
