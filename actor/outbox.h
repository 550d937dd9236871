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

// A queue of tickets and one of finished fragments, between an actor's runners and its stream to the learner.
namespace skein {

// A ticket and the Collect stream in which it came. An actor numbers its streams to learners, in `stream`.
struct HeldTicket {
  v1::Ticket ticket;
  uint64_t stream = 0;
};

// An actor's open tickets and finished fragments, between its runners and its connection to the learner.
//   tickets: connection -> AddTicket -> TakeTicket -> runner
//   fragments: runner -> PutFragment -> (Watch) -> TryNextToSend -> connection
// Assigns sequence numbers, keeps each fragment until its receipt, and after a reconnection sends again what has no
// receipt. Holds no more fragments than tickets were granted, and at most `most`: a stream that breaks repeatedly
// before any receipt brings new tickets each time. Beyond `most` the oldest fragment is dropped. Thread-safe.
class Outbox {
 public:
  static constexpr size_t kMostFragments = 64;
  explicit Outbox(size_t most = kMostFragments) : most_(most) {}

  // One connection of this actor (docs/glossary.md): sequence numbers and step counts begin anew with each.
  struct Connection {
    std::string actor_id;
    uint64_t generation = 0;
    uint64_t env_steps_collected = 0;
  };
  // What happens to fragments without a receipt when a connection begins. kSentAgain: they move to the new connection,
  // under new numbers, and the previous connection does not count them.
  enum class Undelivered { kGivenUp, kSentAgain };
  // Begins a connection and returns the previous one (generation 0: none). The same generation again changes nothing.
  Connection BeginConnection(const std::string& actor_id, uint64_t generation,
                             Undelivered undelivered = Undelivered::kGivenUp);

  // A new stream is open and the learner has receipted everything up to `last_sequence`. Tickets of earlier streams
  // that no runner has begun are void.
  void BeginStream(uint64_t stream, uint64_t last_sequence);
  // The stream broke: nothing more can be sent in this stream.
  void EndStream(uint64_t stream);
  // The stream is to end in order: no runner begins another of its tickets, and sending is over once all begun
  // fragments are finished and receipted.
  void LeaveStream(uint64_t stream);

  // A ticket that a runner is working on, or whose fragment has no receipt, is not worked on twice. It is handed out
  // again only if DropTicket gives up the work on it, or its fragment is not accepted.
  void AddTicket(uint64_t stream, const v1::Ticket& ticket);
  // Blocks for the next ticket. nullopt: Stop() was called, or there is no ticket and `or_else()` holds. A thread that
  // makes `or_else()` true must call Nudge().
  std::optional<HeldTicket> TakeTicket(const std::function<bool()>& or_else = [] { return false; });
  void Nudge();
  bool stopped() const;
  // Whether TakeTicket would return without waiting.
  bool HasWork() const;
  // Gives a ticket up without a fragment. If the current stream granted it again meanwhile, it is the next one.
  void DropTicket(uint64_t ticket_id);

  // Adds a finished fragment. Fills in actor, generation, sequence and env_steps_collected. True: the oldest fragment
  // was dropped to make room; its steps were collected and are lost.
  bool PutFragment(Fragment fragment);
  // The next fragment to send in `stream`, if there is one. over: there will be none, because the stream has ended, or
  // all is sent after StopSending(), or all is receipted after LeaveStream().
  struct ToSend {
    std::shared_ptr<const Fragment> fragment;
    bool over = false;
  };
  ToSend TryNextToSend(uint64_t stream);
  // As TryNextToSend, but blocks until there is a fragment; nullptr: sending is over. REQUIRES: one caller at a time.
  std::shared_ptr<const Fragment> NextToSend(uint64_t stream);
  // From now on calls `changed`, unless null, whenever there may be more to send within a stream or sending may be over
  // (except by BeginConnection, BeginStream and EndStream), on the thread that made the change; calls may be
  // concurrent. `changed` must not block, and must not call Watch or a method that notifies it. When Watch returns, the
  // previous callback is no longer called.
  void Watch(std::function<void()> changed);
  void Acknowledge(const v1::Receipt& receipt);

  // No more tickets. TakeTicket returns nullopt from now on.
  void Stop();
  // Sending is over once everything is sent.
  void StopSending();
  // Waits until every fragment is receipted. False: the timeout was over first, or GiveUp() was called.
  bool WaitUntilReceipted(absl::Duration timeout);
  // Ends WaitUntilReceipted: no further connection will be made.
  void GiveUp();

  Connection connection() const;
  uint64_t env_steps_collected() const;  // Over all connections.
  size_t unreceipted() const;
  // How long the oldest fragment has waited for its receipt; 0 = there is none.
  absl::Duration waiting() const;

 private:
  struct Pending {
    uint64_t sequence = 0;
    uint64_t ticket_id = 0;
    absl::Duration finished;  // When, on the monotonic clock.
    std::shared_ptr<const Fragment> fragment;
  };
  // Ends the work on a ticket without a result. If the current stream granted it again meanwhile, it is the next one.
  void Release(uint64_t ticket_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Assigns a fragment to the current connection, as its next one.
  void Sign(v1::FragmentHeader* header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The first fragment that was not sent in this stream, or end().
  std::deque<Pending>::const_iterator FindUnsent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool SendingIsOver(uint64_t stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RenumberPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellWatcher() ABSL_LOCKS_EXCLUDED(mu_);
  bool PutFragmentQuietly(Fragment fragment);
  void AcknowledgeQuietly(const v1::Receipt& receipt);

  const size_t most_;
  absl::Mutex watch_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::function<void()> changed_ ABSL_GUARDED_BY(watch_mu_);
  mutable absl::Mutex mu_;
  uint64_t stream_ ABSL_GUARDED_BY(mu_) = 0;
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_sending_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<HeldTicket> tickets_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> in_hand_ ABSL_GUARDED_BY(mu_);  // Tickets that runners work on or whose fragment is pending.
  std::map<uint64_t, HeldTicket> granted_anew_ ABSL_GUARDED_BY(mu_);  // Granted in this stream while in hand.
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);                  // Unreceipted, in order of sequence.
  uint64_t last_sequence_ ABSL_GUARDED_BY(mu_) = 0;                   // The last one assigned.
  uint64_t sent_sequence_ ABSL_GUARDED_BY(mu_) = 0;                   // The last one sent in this stream.
  Connection connection_ ABSL_GUARDED_BY(mu_);
  Connection before_ ABSL_GUARDED_BY(mu_);
  uint64_t earlier_env_steps_ ABSL_GUARDED_BY(mu_) = 0;  // Collected by previous connections.
};

}  // namespace skein
