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

// The connected actors.   hello -> Add -> Grant, Answer -> Remove
// Remembers the standing of members that went away. Pure. Not thread-safe.
class ActorRoster {
 public:
  using Records = std::map<ConnectionId, ActorRecord>;

  Records& records() { return records_; }
  const Records& records() const { return records_; }
  // nullptr: it is not connected.
  ActorRecord* Find(const ConnectionId& actor);
  const ActorRecord* Find(const ConnectionId& actor) const;

  // As ActorRecord. It comes after the actors that are here. REQUIRES: it is not connected.
  void Add(const ConnectionId& actor, uint32_t credits, uint32_t runners);
  void Remove(const ConnectionId& actor);
  void Grant(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now);

  // The average of the fastest for a ticket; zero: none of the connected actors has answered yet.
  absl::Duration Fastest() const;
  // Tickets that all can work on at once.
  uint64_t Runners(absl::Duration now) const;
  // Tickets a second that all but `actor` answer, at their averages; `fastest` for those that are unknown.
  double OthersPerSecond(const ActorRecord& actor, absl::Duration fastest, absl::Duration now) const;

 private:
  Records records_;
  AbsentStandings absent_;
  uint64_t turn_ = 0;  // Counts grants and arrivals.
};

}  // namespace skein
