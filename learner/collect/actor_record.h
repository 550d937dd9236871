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

// One connected actor, as the ticket office knows it: the tickets in its hands, how long it takes for one, and how many
// it may have (learner/collect/ticket_timing.h has every time).
// Pure: `now` counts from any fixed moment. Not thread-safe.
class ActorRecord {
 public:
  static constexpr uint32_t kMostRunners = 1024;

  // `credits`: tickets it may hold; `runners`: those it can work on at once. Both as the actor says, within
  // 1 to kMostRunners, and credits within twice the runners; what is beyond is taken for the limit.
  // `turn` counts grants and arrivals in the office.
  ActorRecord(uint32_t credits, uint32_t runners, const ActorStanding& standing, uint64_t turn);

  const ActorStanding& standing() const { return standing_; }
  // What it can work on, and hold, now.
  uint32_t Runners(absl::Duration now) const { return std::min(runners_, standing_.Most(now)); }
  uint32_t Credits(absl::Duration now) const { return std::min(credits_, standing_.Most(now)); }
  size_t in_hand() const { return in_hand_.size(); }
  bool Idle(absl::Duration now) const { return in_hand_.size() < Runners(now); }
  // Fewest tickets for each runner; ties go to the least recently granted.
  bool GoesBefore(const ActorRecord& other) const;
  // It has the ticket in its hands, or had it for so long that it was taken back.
  bool Has(uint64_t ticket_id) const { return in_hand_.count(ticket_id) > 0 || left_.count(ticket_id) > 0; }
  // Tickets that were taken back.
  std::vector<uint64_t> Unserved() const;

  void Grant(uint64_t ticket_id, absl::Duration now, uint64_t turn);
  // It was told that nothing is to come of the ticket.
  void Drop(uint64_t ticket_id) { in_hand_.erase(ticket_id); }
  // It has dropped all tickets that are no longer open but those that were taken back.
  void DropVoid(absl::FunctionRef<bool(uint64_t)> is_open);
  // It gave the ticket back with no usable answer.
  void GiveBack(uint64_t ticket_id);
  // It answered. `granted_once`: the ticket was not taken from another actor before, so the time says how fast this one
  // is. `fastest`: as below.
  void Answer(uint64_t ticket_id, bool granted_once, absl::Duration fastest, absl::Duration now);
  // Takes back what it has left unserved for too long, and lowers its standing for it. Returns the tickets that are
  // still open. `take_back` false: open tickets stay with it.
  std::vector<uint64_t> TakeBackUnserved(absl::Duration fastest, absl::Duration now, bool take_back,
                                         absl::FunctionRef<bool(uint64_t)> is_open);

  // Its average time for a ticket, of one runner; zero = unknown.
  absl::Duration service() const { return service_; }
  // The same, or `fastest`, the average of the fastest actor, if it is unknown.
  absl::Duration Usual(absl::Duration fastest) const { return service_ == absl::ZeroDuration() ? fastest : service_; }
  // How long until it answers a ticket in its hands, by what is known; zero when it may answer any moment; once it is
  // late, how long it has had it.
  absl::Duration ExpectedRemaining(uint64_t ticket_id, absl::Duration fastest, absl::Duration now) const;
  // It was slow when it answered last, which is so long ago that it may not be any more.
  bool TrialIsDue(absl::Duration fastest, absl::Duration now) const;

 private:
  struct Left {
    absl::Duration granted;
    bool unserved = false;  // False: void, and may have been dropped.
  };
  double PerRunner() const { return std::max(1.0, static_cast<double>(in_hand_.size()) / runners_); }

  const uint32_t runners_;
  const uint32_t credits_;
  std::map<uint64_t, absl::Duration>
      in_hand_;                    // Tickets it has not answered, also void ones, with when each was granted.
  std::map<uint64_t, Left> left_;  // Tickets nobody waits for any more, the newest 2 x credits_.
  ActorStanding standing_;
  uint64_t last_turn_;
  absl::Duration service_;   // Zero = unknown.
  absl::Duration measured_;  // When service_ last changed.
};

}  // namespace skein
