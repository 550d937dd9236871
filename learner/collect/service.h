// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/net/call_quota.h"
#include "base/telemetry/rare_log.h"
#include "grpcpp/support/byte_buffer.h"
#include "learner/collect/collector.h"
#include "learner/collect/policy_publisher.h"
#include "learner/collect/unconfirmed_connections.h"
#include "skein/v1/learner_service.grpc.pb.h"
#include "skein/v1/status.pb.h"

namespace skein {

// The learner's gRPC face: one reactor per Collect stream, none of which blocks. Thread-safe.
// Whoever says hello as an actor of this run is welcome at once, as the coordinator may be away. Later it is asked:
//   hello -> HasUnconfirmed -> (the coordinator's status) -> Confirm -> a stream that is no member's ends
class LearnerService : public v1::Learner::WithRawCallbackMethod_Collect<
                           v1::Learner::WithCallbackMethod_SubscribePolicy<v1::Learner::Service>> {
 public:
  LearnerService();
  ~LearnerService() override;

  // Until this is called all calls are answered UNAVAILABLE. Both must live until the server is shut down. `lease` is
  // that of the run's members.
  void Serve(std::string run_id, Collector* collector, PolicyPublisher* publisher,
             absl::Duration lease = absl::ZeroDuration());

  // This learner needs nobody: all calls stay UNAVAILABLE, and it counts as serving all the same.
  void ServeNobody() { on_serving_(true); }

  // Called with true once Serve() or ServeNobody() has been called, and with false by Finish(). Set it before.
  void OnServing(std::function<void(bool)> on_serving) { on_serving_ = std::move(on_serving); }

  // Raw: a batch is read where it was received.
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Collect(grpc::CallbackServerContext*) override;
  // For those only who have a Collect stream, and for as long as they have it.
  grpc::ServerWriteReactor<v1::PolicySnapshot>* SubscribePolicy(grpc::CallbackServerContext*,
                                                                const v1::SubscribePolicyRequest* request) override;

  // Sends whatever tickets can be granted now. Call after each Collector::OpenIteration.
  void SendGrants();
  // Whether there are connections that the coordinator has not confirmed as members' yet.
  bool HasUnconfirmed();
  // Whether a stream has ended since this was last asked. Thread-safe.
  bool TakeStreamEnded() { return stream_ended_.exchange(false); }
  // `status` is what the coordinator answered when it was asked at `asked` (MonotonicNow()): as
  // UnconfirmedConnections::Judge() says, connections that are over are closed, and strangers' streams are ended, too.
  void Confirm(const v1::StatusResponse& status, absl::Duration asked);
  // Tells every actor that the run is over and ends its stream once that is sent. Idempotent.
  void Finish();
  // Waits until no stream is open, or the timeout is over.
  void WaitUntilIdle(absl::Duration timeout);

 private:
  class Stream;
  // Opens the actor's books and makes `stream` its stream, ending an older one. Errors as Collector::Open;
  // ResourceExhausted: too many are unconfirmed.
  absl::Status Admit(const ConnectionId& actor, const v1::Hello& hello, std::shared_ptr<Stream> stream);
  // The connection of the open stream of this member, its newest; nullptr: there is none.
  const ConnectionId* FindStream(const std::string& actor_id, uint64_t generation, const std::string& certificate) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // ResourceExhausted: too many calls of this connection. Unavailable: not before Serve().
  absl::Status CheckCall(const grpc::CallbackServerContext& context);
  // False if another stream of the same actor has taken over.
  bool Dismiss(const ConnectionId& actor, const Stream* stream);

  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return streams_.empty(); }

  // Constant once serving_ is set.
  std::string run_id_;
  Collector* collector_ = nullptr;
  PolicyPublisher* publisher_ = nullptr;
  absl::Duration lease_;
  std::atomic<bool> serving_{false};
  std::atomic<bool> stream_ended_{false};
  std::function<void(bool)> on_serving_ = [](bool) {};  // Constant once the server has started.

  CallQuota quota_;
  RareLog strangers_;

  absl::Mutex mu_;
  UnconfirmedConnections unconfirmed_ ABSL_GUARDED_BY(mu_);
  std::map<ConnectionId, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::map<ConnectionId, uint64_t> forgotten_ ABSL_GUARDED_BY(mu_);  // Sequences, as SKEIN_FAULTS wants it.
};

}  // namespace skein
