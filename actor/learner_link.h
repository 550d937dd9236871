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

// An actor's connection to its learner: tickets and receipts in, batches out, policies in; connects again with jittered
// back-off whenever it breaks.   Outbox <-> Collect stream;   SubscribePolicy stream -> on_policy
// Each stay with a learner is a life of its own in that learner's books, generation + 0, 1, 2, ...: they are closed
// when the actor leaves, and a learner that it comes back to opens new ones. Thread-safe; Run() occupies one thread,
// which mostly sleeps: gRPC's threads read and go on writing, and a runner that puts a batch begins to write it.
class LearnerLink {
 public:
  struct Target {
    std::string address;  // Empty: there is no learner yet.
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
    // On a thread of gRPC's. Not ok: the snapshot is unusable; it is logged and asked for again.
    std::function<absl::Status(uint64_t epoch, const v1::PolicySnapshot&)> on_policy;
  };
  explicit LearnerLink(Options options) : options_(std::move(options)) {}

  // Where to connect. Another address for the same member ends the present connection in order: runners finish the
  // fragments they have begun, these are receipted, goodbye; then comes the other learner. Any other change breaks it.
  void SetTarget(const Target& target);

  // Serves connections until the run is over, Stop() or Abort(): OK.
  // Aborted: the learner closed this life; join again. FailedPrecondition, InvalidArgument: it refused for good.
  // ResourceExhausted: a batch is larger than messages may be; says what to set. (Where the learner says so, because it
  // has too much to do, the connection is made again.)
  absl::Status Run();

  // Says goodbye after everything that the outbox will send, then Run returns. Call Outbox::StopSending() after it.
  void Stop();
  // Breaks the connection at once; Run returns.
  void Abort();
  // Waits until Run has returned, or the timeout is over.
  void WaitUntilEnded(absl::Duration timeout);
  // Whether the learner said that the run is over.
  bool finished() const;
  // How long the oldest finished fragment has waited for its receipt or there has been a learner and no connection to
  // it, whichever is longer; 0 = neither. Long ones mean that data do not pass, whatever heartbeats do.
  absl::Duration undelivered() const;

 private:
  absl::Status ServeConnections();
  absl::Status ServeOneConnection(const Target& target, uint64_t stay);
  v1::CollectRequest MakeHello(const Target& target, uint64_t stay);
  // Of the present connection's call of Collect.
  void Receive(const Target& target, const v1::CollectResponse& response);
  std::optional<CollectCall::Request> NextRequest();
  void NoteTaken(absl::Duration took);
  void CollectIsOver();
  // Blocks until the welcome has come or the call is over: whether it has come.
  bool AwaitWelcome();
  // Subscribes again and again until the call of Collect is over. `subscribed` is called once the first is under way.
  void Subscribe(const Target& target, v1::Learner::Stub* stub, const std::function<void()>& subscribed);
  // A batch that no message can carry: Run returns, and says so.
  void GiveUpOn(const v1::TrajectoryBatch& batch, size_t bytes);
  // For the metrics: when a batch was handed to the transport, and its receipt.
  void NoteSent(uint64_t sequence);
  void NoteReceipt(const v1::Receipt& receipt);
  // Registers the context of a connection to `target` that Abort and SetTarget cancel; nullptr when its call is over.
  void SetContext(const Target& target, grpc::ClientContext* collect);
  bool StopWaiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || aborted_; }
  bool WelcomedOrOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return course_.welcomed || course_.over; }
  bool ReadyToConnect() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return StopWaiting() || !target_.address.empty(); }

  // How a connection goes.
  struct Course {
    bool welcomed = false;
    bool may_send = false;  // Batches.
    bool left = false;      // Goodbye was said.
    bool over = false;
  };

  const Options options_;
  mutable absl::Mutex mu_;
  Target target_ ABSL_GUARDED_BY(mu_);
  absl::Status too_large_ ABSL_GUARDED_BY(mu_);
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // Counts connections.
  grpc::ClientContext* collect_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  grpc::ClientContext* subscribe_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  Course course_ ABSL_GUARDED_BY(mu_);                     // Of the present or last connection.
  uint64_t sending_bytes_ ABSL_GUARDED_BY(mu_) = 0;        // Of the batch that is being sent,
  uint64_t sending_saved_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // and what rounding and compression saved of it.
  absl::Duration alone_since_ ABSL_GUARDED_BY(mu_);        // Since when, with a target, there is no connection to it.
  Target connected_ ABSL_GUARDED_BY(mu_);  // Whose welcome has come, until the connection is over; else empty.
  std::map<uint64_t, absl::Duration> sent_ ABSL_GUARDED_BY(mu_);  // When, by sequence; what has no receipt yet.
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;                     // The present connection is to end in order.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
