// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "learner/collect/actor_record.h"
#include "learner/collect/actor_standing.h"
#include "learner/collect/connection_id.h"

namespace skein {

// The records of the connected actors.   hello -> Add -> Grant, Answer -> Remove
// Remembers the standing of members that disconnected. Pure. Not thread-safe.
class ActorRoster {
 public:
  using Records = std::map<ConnectionId, ActorRecord>;

  Records& records() { return records_; }
  const Records& records() const { return records_; }
  // nullptr: the actor is not connected.
  ActorRecord* Find(const ConnectionId& actor);
  const ActorRecord* Find(const ConnectionId& actor) const;

  // As ActorRecord. The new actor comes last in the order of grants. REQUIRES: it is not connected.
  void Add(const ConnectionId& actor, uint32_t credits, uint32_t runners);
  void Remove(const ConnectionId& actor);
  void Grant(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now);

  // The fastest actor's average time for a ticket; zero: none of the connected actors has answered yet.
  absl::Duration Fastest() const;
  // Tickets that all actors together can serve at once.
  uint64_t Runners(absl::Duration now) const;
  // Tickets a second that all actors but `actor` answer, at their averages; unknown averages count as `fastest`.
  double OthersPerSecond(const ActorRecord& actor, absl::Duration fastest, absl::Duration now) const;

 private:
  Records records_;
  AbsentStandings absent_;
  uint64_t turn_ = 0;  // Counts grants and arrivals.
};

}  // namespace skein
