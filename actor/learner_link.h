// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "skein/v1/learner_service.grpc.pb.h"

namespace skein {

// An actor's connection to its learner: tickets and receipts in, batches out, policies in; connects again with jittered
// back-off whenever it breaks.   Outbox <-> Collect stream;   SubscribePolicy stream -> on_policy
// Each stay with a learner is a life of its own in that learner's books, generation + 0, 1, 2, ...: they are closed
// when the actor leaves, and a learner that it comes back to opens new ones. Thread-safe; Run() occupies one thread
// and, while connected, starts and joins two more (writer, subscriber).
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
    // On the subscriber's thread. Not ok: the snapshot is unusable; it is logged and asked for again.
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

  // Says goodbye after everything that the outbox will send, then Run returns. Call Outbox::StopSending() with it.
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
  using CollectStream = grpc::ClientReaderWriter<grpc::ByteBuffer, v1::CollectResponse>;

  absl::Status ServeConnections();
  // How a connection went.
  struct Course {
    bool welcomed = false;
    bool left = false;  // Goodbye was said.
  };
  absl::Status ServeOneConnection(const Target& target, uint64_t stay, Course* course);
  void Write(uint64_t epoch, CollectStream* stream, bool* left);
  void Subscribe(uint64_t epoch, const Target& target, v1::Learner::Stub* stub);
  // A batch that no message can carry: Run returns, and says so.
  void GiveUpOn(const v1::TrajectoryBatch& batch, size_t bytes);
  // For the metrics: when a batch was handed to the transport, and its receipt.
  void NoteSent(uint64_t sequence);
  void NoteReceipt(const v1::Receipt& receipt);
  // Registers the context of a connection to `target` that Abort and SetTarget cancel; nullptr when its call is over.
  void SetContext(const Target& target, grpc::ClientContext* collect);
  bool StopWaiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || aborted_; }
  bool ReadyToConnect() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return StopWaiting() || !target_.address.empty(); }

  const Options options_;
  mutable absl::Mutex mu_;
  Target target_ ABSL_GUARDED_BY(mu_);
  absl::Status too_large_ ABSL_GUARDED_BY(mu_);
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // Counts connections; the subscriber ends when it changes.
  grpc::ClientContext* collect_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  grpc::ClientContext* subscribe_context_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool subscribing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration alone_since_ ABSL_GUARDED_BY(mu_);  // Since when, with a target, there is no connection to it.
  Target connected_ ABSL_GUARDED_BY(mu_);  // Whose welcome has come, until the connection is over; else empty.
  std::map<uint64_t, absl::Duration> sent_ ABSL_GUARDED_BY(mu_);  // When, by sequence; what has no receipt yet.
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;                     // The present connection is to end in order.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
