// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "actor/collect_call.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "grpcpp/client_context.h"
#include "skein/v1/learner_service.grpc.pb.h"

namespace skein {

// An actor's link to its learner: receives tickets, receipts and policies, sends fragments, and reconnects with
// jittered back-off when the stream breaks.   Outbox <-> Collect stream;   SubscribePolicy stream -> on_policy
// Each move to another learner begins a new connection with its own step account: generation + 0, 1, 2, ... The account
// is closed when the actor leaves; a learner to which it returns opens a new one. Thread-safe. Run() occupies one
// thread, which is seldom active: gRPC's threads read and continue writes, and a runner that puts a fragment starts its
// write.
class LearnerLink {
 public:
  struct Target {
    std::string address;  // Empty: no learner is assigned yet.
    std::string run_id;
    std::string actor_id;
    uint64_t generation = 0;
    bool operator==(const Target& other) const {
      return address == other.address && run_id == other.run_id && actor_id == other.actor_id &&
             generation == other.generation;
    }
  };
  struct Options {
    v1::EnvSpecInfo env_spec;
    uint32_t runners = 1;
    Outbox* outbox = nullptr;
    PolicyStore* policies = nullptr;
    ActorMetrics* metrics = nullptr;
    // Called on a gRPC thread. Not ok: the snapshot is unusable; the error is logged and the snapshot is requested
    // again.
    std::function<absl::Status(uint64_t stream, const v1::PolicySnapshot&)> on_policy;
  };
  explicit LearnerLink(Options options) : options_(std::move(options)) {}

  // Sets where to connect. Another address for the same member ends the current connection in order: runners finish the
  // fragments they have begun, these are receipted, the actor says goodbye and connects to the other learner. Any other
  // change breaks the connection.
  void SetTarget(const Target& target);

  // Serves connections until the run is over, Stop() or Abort(): OK.
  // Aborted: the learner closed this connection's account; join again. FailedPrecondition, InvalidArgument,
  // Unauthenticated: it refused permanently. ResourceExhausted: a fragment exceeds the message limit; the message says
  // what to set. (If an overloaded learner answers ResourceExhausted, the link reconnects.)
  absl::Status Run();

  // Says goodbye after everything that the outbox will send, then Run returns. Call Outbox::StopSending() after it.
  void Stop();
  // Breaks the connection at once; Run returns.
  void Abort();
  // Waits until Run has returned, or the timeout is over.
  void WaitUntilEnded(absl::Duration timeout);
  // Whether the learner has reported that the run is over.
  bool finished() const;
  // How long the oldest finished fragment has waited for its receipt, or how long a learner has been assigned without a
  // connection to it, whichever is longer; 0 = neither. A long time means that no data arrive, whatever heartbeats
  // show.
  absl::Duration undelivered() const;

 private:
  absl::Status ServeConnections();
  absl::Status ServeOneConnection(const Target& target, uint64_t stay);
  v1::CollectRequest MakeHello(const Target& target, uint64_t stay);
  // Callbacks of the current Collect call.
  void Receive(const Target& target, const v1::CollectResponse& response);
  std::optional<CollectCall::Request> NextRequest();
  void NoteTaken(absl::Duration took);
  void CollectIsOver();
  // Blocks until the welcome has come or the call is over; returns whether it has come.
  bool AwaitWelcome();
  // Keeps subscribing to policies until the Collect call is over. Calls `subscribed` once the first call is started.
  void Subscribe(const Target& target, v1::Learner::Stub* stub, const std::function<void()>& subscribed);
  // A fragment exceeds the message limit: makes Run return ResourceExhausted.
  void GiveUpOn(const v1::FragmentHeader& fragment, size_t bytes);
  // For the metrics: record when a fragment was handed to the transport, and its receipt.
  void NoteSent(uint64_t sequence);
  void NoteReceipt(const v1::Receipt& receipt);
  // Registers the context of the Collect call to `target`, for Abort and SetTarget to cancel; nullptr: it is over.
  void SetContext(const Target& target, grpc::ClientContext* collect);
  bool StopWaiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || aborted_; }
  bool WelcomedOrOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return course_.welcomed || course_.over; }
  bool ReadyToConnect() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return StopWaiting() || !target_.address.empty(); }

  // State of one Collect call.
  struct Course {
    bool welcomed = false;
    bool may_send = false;  // Fragments may be sent.
    bool left = false;      // Goodbye was said.
    bool over = false;
  };

  const Options options_;
  mutable absl::Mutex mu_;
  Target target_ ABSL_GUARDED_BY(mu_);
  absl::Status too_large_ ABSL_GUARDED_BY(mu_);
  uint64_t stream_ ABSL_GUARDED_BY(mu_) = 0;  // Counts Collect calls.
  grpc::ClientContext* collect_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  grpc::ClientContext* subscribe_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  Course course_ ABSL_GUARDED_BY(mu_);                     // Of the current or last Collect call.
  uint64_t sending_bytes_ ABSL_GUARDED_BY(mu_) = 0;        // Of the fragment that is being sent,
  uint64_t sending_saved_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // and what rounding and compression saved of it.
  absl::Duration alone_since_ ABSL_GUARDED_BY(mu_);        // Since when there is a target and no connection to it.
  Target connected_ ABSL_GUARDED_BY(mu_);  // Target that sent its welcome, until the call is over; else empty.
  std::map<uint64_t, absl::Duration> sent_ ABSL_GUARDED_BY(mu_);  // Send times by sequence, until the receipt.
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;                     // The current connection is to end in order.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
