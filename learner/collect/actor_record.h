// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "learner/collect/actor_standing.h"

namespace skein {

// The ticket office's record of one connected actor: the tickets it holds, its average time for a ticket, and how many
// tickets it may hold. learner/collect/ticket_timing.h defines every deadline.
// Pure: `now` counts from any fixed moment. Not thread-safe.
class ActorRecord {
 public:
  static constexpr uint32_t kMostRunners = 1024;

  // `credits`: tickets the actor may hold; `runners`: tickets it can serve at once. Both are the actor's own values,
  // clamped: runners to 1 .. kMostRunners, credits to 1 .. 2 x runners.
  // `turn` counts grants and arrivals in the office.
  ActorRecord(uint32_t credits, uint32_t runners, const ActorStanding& standing, uint64_t turn);

  const ActorStanding& standing() const { return standing_; }
  // Tickets that the actor can serve at once, and hold, at `now`.
  uint32_t Runners(absl::Duration now) const { return std::min(runners_, standing_.Most(now)); }
  uint32_t Credits(absl::Duration now) const { return std::min(credits_, standing_.Most(now)); }
  size_t in_hand() const { return in_hand_.size(); }
  bool Idle(absl::Duration now) const { return in_hand_.size() < Runners(now); }
  // Order of grants: fewest tickets per runner first; ties go to the oldest last grant.
  bool GoesBefore(const ActorRecord& other) const;
  // The actor holds the ticket, or held it until the office stopped waiting for it.
  bool Has(uint64_t ticket_id) const { return in_hand_.count(ticket_id) > 0 || left_.count(ticket_id) > 0; }
  // Tickets that were taken back.
  std::vector<uint64_t> Unserved() const;

  void Grant(uint64_t ticket_id, absl::Duration now, uint64_t turn);
  // The actor was told that the ticket is void.
  void Drop(uint64_t ticket_id) { in_hand_.erase(ticket_id); }
  // The actor dropped all tickets that are no longer open. Tickets that were left unserved stay recorded.
  void DropVoid(absl::FunctionRef<bool(uint64_t)> is_open);
  // The actor answered the ticket with an unusable fragment.
  void GiveBack(uint64_t ticket_id);
  // The actor answered. `granted_once`: the ticket was not taken from another actor before, so the time since the grant
  // counts toward this actor's average. `fastest`: as in Usual.
  void Answer(uint64_t ticket_id, bool granted_once, absl::Duration fastest, absl::Duration now);
  // Takes back tickets that were unserved for too long, and lowers the actor's standing. Returns those of them that are
  // still open. `take_back` false: open tickets stay with the actor.
  std::vector<uint64_t> TakeBackUnserved(absl::Duration fastest, absl::Duration now, bool take_back,
                                         absl::FunctionRef<bool(uint64_t)> is_open);

  // The average time of one of its runners for a ticket; zero = unknown.
  absl::Duration service() const { return service_; }
  // service(), or `fastest` (the average of the fastest actor) while it is unknown.
  absl::Duration Usual(absl::Duration fastest) const { return service_ == absl::ZeroDuration() ? fastest : service_; }
  // Expected time until the actor answers a ticket that it holds; zero if the answer is due. Once the ticket is late:
  // the time since its grant.
  absl::Duration ExpectedRemaining(uint64_t ticket_id, absl::Duration fastest, absl::Duration now) const;
  // Its average is slow, but was last measured so long ago that a new measurement is worthwhile.
  bool TrialIsDue(absl::Duration fastest, absl::Duration now) const;

 private:
  struct Left {
    absl::Duration granted;
    bool unserved = false;  // False: the ticket is void; the actor may have dropped it.
  };
  double PerRunner() const { return std::max(1.0, static_cast<double>(in_hand_.size()) / runners_); }

  const uint32_t runners_;
  const uint32_t credits_;
  std::map<uint64_t, absl::Duration>
      in_hand_;                    // Tickets not answered yet, void ones included, with the time of each grant.
  std::map<uint64_t, Left> left_;  // Tickets that are no longer waited for, the newest 2 x credits_.
  ActorStanding standing_;
  uint64_t last_turn_;
  absl::Duration service_;   // Zero = unknown.
  absl::Duration measured_;  // When service_ last changed.
};

}  // namespace skein
