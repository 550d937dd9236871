// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"

namespace skein {

// A ticket and the connection it came over.
struct HeldTicket {
  v1::Ticket ticket;
  uint64_t epoch = 0;
};

// What an actor has to do and has done, between its runners and its connection to the learner.
//   tickets: connection -> AddTicket -> TakeTicket -> runner
//   batches: runner -> PutBatch -> (Watch) -> TryNextToSend -> connection
// Gives sequence numbers, keeps each batch until its receipt, and after a reconnection sends again what was not
// receipted. Holds no more batches than tickets were granted, and `most` at most: a connection that breaks again and
// again before anything is receipted brings tickets each time. Then the oldest is dropped. Thread-safe.
class Outbox {
 public:
  static constexpr size_t kMostBatches = 64;
  explicit Outbox(size_t most = kMostBatches) : most_(most) {}

  // One life of this actor in the run: numbers start anew.
  struct Life {
    std::string actor_id;
    uint64_t generation = 0;
    uint64_t env_steps_collected = 0;
  };
  // What becomes of batches without a receipt when a life begins. kSentAgain: they belong to the new life, under new
  // numbers, and the life before does not count them.
  enum class Undelivered { kGivenUp, kSentAgain };
  // Returns the life before (generation 0: none). The same generation again changes nothing.
  Life BeginLife(const std::string& actor_id, uint64_t generation, Undelivered undelivered = Undelivered::kGivenUp);

  // A new connection is up and the learner has receipted everything up to `last_sequence`; tickets of earlier
  // connections that no runner has begun are void.
  void BeginEpoch(uint64_t epoch, uint64_t last_sequence);
  // The connection broke: there is nothing to send in this epoch any more.
  void EndEpoch(uint64_t epoch);
  // The connection is to end in order: no runner begins another of its tickets, and sending is over once all that was
  // begun is done and receipted.
  void LeaveEpoch(uint64_t epoch);

  // A ticket that this actor is working on already, or has an unreceipted batch for, is not worked on twice: it is
  // handed out again only if DropTicket gives up the work on it.
  void AddTicket(uint64_t epoch, const v1::Ticket& ticket);
  // Blocks for the next ticket. nullopt: Stop() was called, or there is none and `or_else()` holds, which whoever makes
  // it so must tell by Nudge().
  std::optional<HeldTicket> TakeTicket(const std::function<bool()>& or_else = [] { return false; });
  void Nudge();
  bool stopped() const;
  // Whether TakeTicket would not block.
  bool HasWork() const;
  // The runner gives a ticket up without a batch. If the present connection granted it anew meanwhile, it is next.
  void DropTicket(uint64_t ticket_id);

  // A finished fragment. Fills in actor, generation, sequence and env_steps_collected. Whether the oldest batch was
  // dropped for it: its steps were collected and are lost.
  bool PutBatch(Fragment batch);
  // The next batch to send in `epoch`, if there is one. over: there will be none, as the epoch has ended, all is sent
  // after StopSending() or receipted after LeaveEpoch().
  struct ToSend {
    std::shared_ptr<const Fragment> batch;
    bool over = false;
  };
  ToSend TryNextToSend(uint64_t epoch);
  // Blocks for it; nullptr: it is over. REQUIRES: one caller at a time.
  std::shared_ptr<const Fragment> NextToSend(uint64_t epoch);
  // From now on `changed`, if any, is called whenever there may be more to send within an epoch or sending may be over
  // (but for BeginLife, BeginEpoch and EndEpoch), on the thread that made it so; on several at once, if need be. It
  // must not block, nor call Watch or what brings it about. When Watch returns, what watched before is not called any
  // more.
  void Watch(std::function<void()> changed);
  void Acknowledge(const v1::Receipt& receipt);

  // No more tickets. TakeTicket returns nullopt from now on.
  void Stop();
  // Sending is over once everything is sent.
  void StopSending();
  // Waits until every batch is receipted. False: the timeout was over first, or GiveUp() was called.
  bool WaitUntilReceipted(absl::Duration timeout);
  // No connection will be made any more.
  void GiveUp();

  Life life() const;
  uint64_t env_steps_collected() const;  // By all lives.
  size_t unreceipted() const;
  // How long the oldest batch has waited for its receipt; 0 = there is none.
  absl::Duration waiting() const;

 private:
  struct Pending {
    uint64_t sequence = 0;
    uint64_t ticket_id = 0;
    absl::Duration finished;  // When, on the monotonic clock.
    std::shared_ptr<const Fragment> batch;
  };
  // The work on a ticket was for nothing. If the present connection granted it anew meanwhile, it is next.
  void Release(uint64_t ticket_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts a batch to the present life, as its next one.
  void Sign(v1::TrajectoryBatch* header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The first that was not sent in this epoch, or end().
  std::deque<Pending>::const_iterator FindUnsent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool SendingIsOver(uint64_t epoch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RenumberPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellWatcher() ABSL_LOCKS_EXCLUDED(mu_);
  bool PutBatchQuietly(Fragment batch);
  void AcknowledgeQuietly(const v1::Receipt& receipt);

  const size_t most_;
  absl::Mutex watch_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::function<void()> changed_ ABSL_GUARDED_BY(watch_mu_);
  mutable absl::Mutex mu_;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_sending_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<HeldTicket> tickets_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> in_hand_ ABSL_GUARDED_BY(mu_);  // Tickets that runners work on or whose batch is pending.
  std::map<uint64_t, HeldTicket> granted_anew_ ABSL_GUARDED_BY(mu_);  // Came in this epoch while in hand.
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);                  // Unreceipted, in order of sequence.
  uint64_t last_sequence_ ABSL_GUARDED_BY(mu_) = 0;                   // Given out.
  uint64_t sent_sequence_ ABSL_GUARDED_BY(mu_) = 0;                   // Sent in this epoch.
  Life life_ ABSL_GUARDED_BY(mu_);
  Life before_ ABSL_GUARDED_BY(mu_);
  uint64_t earlier_env_steps_ ABSL_GUARDED_BY(mu_) = 0;  // Collected by lives before this one.
};

}  // namespace skein
