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

// The learner's gRPC service. Each Collect stream has a reactor that does not block. Thread-safe.
// A valid hello is accepted at once, because the coordinator may be down. The connection is confirmed later:
//   hello -> HasUnconfirmed -> (the coordinator's status) -> Confirm -> streams that belong to no member end
class LearnerService : public v1::Learner::WithRawCallbackMethod_Collect<
                           v1::Learner::WithCallbackMethod_SubscribePolicy<v1::Learner::Service>> {
 public:
  LearnerService();
  ~LearnerService() override;

  // Starts to serve; all calls before it are answered UNAVAILABLE. `collector` and `publisher` must live until the
  // server is shut down. `lease`: of the run's members.
  void Serve(std::string run_id, Collector* collector, PolicyPublisher* publisher,
             absl::Duration lease = absl::ZeroDuration());

  // This learner needs no actors: all calls stay UNAVAILABLE, but it is reported as serving.
  void ServeNoActors() { on_serving_(true); }

  // Called with true once Serve() or ServeNoActors() has been called, and with false by Finish(). Set it before.
  void OnServing(std::function<void(bool)> on_serving) { on_serving_ = std::move(on_serving); }

  // Raw: a fragment is read in place, from the received bytes.
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Collect(grpc::CallbackServerContext*) override;
  // Only for actors with an open Collect stream; ends with that stream.
  grpc::ServerWriteReactor<v1::PolicySnapshot>* SubscribePolicy(grpc::CallbackServerContext*,
                                                                const v1::SubscribePolicyRequest* request) override;

  // Sends all tickets that can be granted now. Call after each Collector::OpenIteration.
  void SendGrants();
  // Whether there are connections that the coordinator has not confirmed yet.
  bool HasUnconfirmed();
  // Whether a stream has ended since the last call. Thread-safe.
  bool TakeStreamEnded() { return stream_ended_.exchange(false); }
  // `status`: the coordinator's answer to a request made at `asked` (MonotonicNow()). Closes the connections that
  // UnconfirmedConnections::Judge() finds ended, and ends the streams of strangers, connections of no member.
  void Confirm(const v1::StatusResponse& status, absl::Duration asked);
  // Tells every actor that the run is over and ends its stream once that is sent. Idempotent.
  void Finish();
  // Waits until no stream is open, or the timeout is over.
  void WaitUntilIdle(absl::Duration timeout);

 private:
  class Stream;
  // Opens the connection's account and makes `stream` its stream, ending an older one. Errors as Collector::Open;
  // ResourceExhausted: too many connections are unconfirmed.
  absl::Status Admit(const ConnectionId& actor, const v1::Hello& hello, std::shared_ptr<Stream> stream);
  // The newest connection of this member that has an open stream; nullptr: there is none.
  const ConnectionId* FindStream(const std::string& actor_id, uint64_t generation, const std::string& certificate) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // ResourceExhausted: too many calls from this peer. Unavailable: Serve() has not been called.
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
  std::map<ConnectionId, uint64_t> forgotten_ ABSL_GUARDED_BY(mu_);  // Sequences to forget, set by SKEIN_FAULTS.
};

}  // namespace skein
