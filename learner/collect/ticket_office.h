// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "learner/collect/actor_roster.h"
#include "learner/collect/env_groups.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Decides which actor gets which ticket.   OpenIteration | OpenTickets -> Grant -> Accept -> Commit -> EndIteration
// A ticket is a work order for one fragment of one env group. It carries all that the fragment depends on, so any actor
// can serve it with the same result: fast actors are granted more; tickets of an actor that went away are granted
// again; a late one is granted to a second actor as well, and the first answer is accepted. What may be ordered is
// EnvGroups', what an actor may hold is ActorRecord's, every time is in learner/collect/ticket_timing.h;
// docs/architecture.md has the rules one by one. Where environments cannot be moved, a group's tickets go to its owner
// only, however late that is. Pure: no I/O, no clock (`now` counts from any fixed moment). Not thread-safe.
class TicketOffice {
 public:
  using Options = EnvGroups::Options;
  using Grants = std::vector<std::pair<ConnectionId, v1::Ticket>>;
  explicit TicketOffice(const Options& options) : groups_(options) {}

  // What is open, and where the groups continue.
  const EnvGroups& groups() const { return groups_; }
  int num_actors() const { return static_cast<int>(actors_.records().size()); }

  // As EnvGroups; all tickets are void, and actors stay.
  void TakeShare(uint32_t first_env, uint32_t num_envs);
  void Restore(const TicketState& state) { groups_.Restore(state); }
  void OpenIteration(uint64_t policy_version) { groups_.OpenIteration(policy_version); }
  uint32_t OpenTickets(uint32_t count) { return groups_.OpenTickets(count); }
  void CloseIteration();
  // As EnvGroups; tickets that are void now stay in their holders' hands.
  std::vector<uint32_t> EndIteration();

  // As ActorRecord. An actor that connects again gives up what it held.
  void AddActor(const ConnectionId& actor, uint32_t credits, uint32_t runners);
  // Its tickets can be granted again at once (and be answered by it still, if it comes back first).
  void RemoveActor(const ConnectionId& actor);

  // Tickets to send now.
  Grants Grant(absl::Duration now);

  // What an open ticket is for.
  std::optional<Piece> PieceOf(uint64_t ticket_id) const;
  // Whether an open ticket was granted to `actor`, or to another connection of the same member, which takes along what
  // it has begun.
  bool GrantedTo(const ConnectionId& actor, uint64_t ticket_id) const;
  // `actor` answered. The piece if `ticket_id` is open and was granted to it: it is then accepted, once. nullopt: it is
  // void or another's.
  std::optional<Piece> Accept(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now);
  // The data of an accepted ticket are in place; the group's next ticket continues from `state`.
  void Commit(uint32_t group, TicketState state) { groups_.Commit(group, std::move(state)); }
  // The data of an accepted ticket turned out to be unusable: its piece gets another ticket.
  void Reopen(uint32_t group) { groups_.Reopen(group); }
  // `actor` answered with something unusable: the ticket is granted again.
  void Refuse(const ConnectionId& actor, uint64_t ticket_id);

  // For people: actors that hold open tickets now, or left them unserved, with how many.
  std::map<ConnectionId, uint32_t> Holders() const;

 private:
  using ActorEntry = ActorRoster::Records::value_type;

  void TakeBackUnserved(absl::Duration now);
  // Tickets that nobody holds, each to the actor with the fewest for each of its runners.
  void GrantWaiting(absl::Duration now, Grants* grants);
  // Tickets that others hold, to actors with nothing else to do.
  void GrantCopies(absl::Duration now, Grants* grants);
  // To `entry` the ticket, of those with `most_holders` at most, that will take its newest holder longest and longer
  // than `worth`. False: there is none.
  bool GrantCopy(absl::Duration worth, size_t most_holders, absl::Duration now, ActorEntry* entry, Grants* grants);
  void Give(uint32_t group, ActorEntry* entry, absl::Duration now, Grants* grants);
  // Whether the others would be done with all that is open before `actor` with this ticket and what follows from it.
  bool TooSlow(const ActorRecord& actor, const EnvGroup& group, absl::Duration now) const;
  std::vector<ActorEntry*> IdleActors(absl::Duration now);

  EnvGroups groups_;
  ActorRoster actors_;
};

}  // namespace skein
