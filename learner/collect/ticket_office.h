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
// A ticket is a work order for one fragment of one env group. It carries all inputs of the fragment, so any actor can
// serve it with the same result. Fast actors are granted more tickets; tickets of a disconnected actor are granted
// again; a late ticket is granted to a second actor too, and the first answer is accepted. If environments are not
// relocatable, a group's tickets go to its owner only, however late that is, and no actor becomes the owner of more
// groups than it has runners while a group has waited for less than kUnowned. EnvGroups has the tickets, ActorRecord
// what an actor may hold, learner/collect/ticket_timing.h all deadlines; docs/architecture.md lists the rules.
// Pure: no I/O, no clock (`now` counts from any fixed moment). Not thread-safe.
class TicketOffice {
 public:
  using Options = EnvGroups::Options;
  using Grants = std::vector<std::pair<ConnectionId, v1::Ticket>>;
  explicit TicketOffice(const Options& options) : groups_(options) {}

  // Open tickets, and the state from which each group continues.
  const EnvGroups& groups() const { return groups_; }
  int num_actors() const { return static_cast<int>(actors_.records().size()); }

  // As EnvGroups; all tickets become void, and actors stay connected.
  void TakeShare(uint32_t first_env, uint32_t share_envs);
  void Restore(const TicketState& state) { groups_.Restore(state); }
  void OpenIteration(uint64_t policy_version, uint32_t env_phase = 0) {
    groups_.OpenIteration(policy_version, env_phase);
  }
  void SetEnvPhase(uint32_t env_phase) { groups_.SetEnvPhase(env_phase); }
  uint32_t OpenTickets(uint32_t count) { return groups_.OpenTickets(count); }
  void CloseIteration();
  // As EnvGroups; tickets that become void stay in their holders' records.
  std::vector<uint32_t> EndIteration();

  // As ActorRecord. An actor that connects again no longer holds its earlier tickets.
  void AddActor(const ConnectionId& actor, uint32_t credits, uint32_t runners);
  // The actor's tickets can be granted again at once. It may still answer them if it reconnects first.
  void RemoveActor(const ConnectionId& actor);

  // Tickets to send now.
  Grants Grant(absl::Duration now);

  // The piece of an open ticket; nullopt: it is void.
  std::optional<Piece> PieceOf(uint64_t ticket_id) const;
  // Whether an open ticket was granted to `actor` or another connection of the same member. A member that reconnects
  // keeps the fragments that it has begun.
  bool GrantedTo(const ConnectionId& actor, uint64_t ticket_id) const;
  // `actor` answered. Accepts the ticket, once, and returns its piece. nullopt: the ticket is void or was not granted
  // to `actor`.
  std::optional<Piece> Accept(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now);
  // The data of an accepted ticket are in place; the group's next ticket continues from `state`.
  void Commit(uint32_t group, TicketState state) { groups_.Commit(group, std::move(state)); }
  // The data of an accepted ticket are unusable: its piece gets another ticket.
  void Reopen(uint32_t group) { groups_.Reopen(group); }
  // `actor` answered with an unusable fragment: the ticket is granted again.
  void Refuse(const ConnectionId& actor, uint64_t ticket_id);

  // For logs: the number of open tickets that each actor holds or left unserved.
  std::map<ConnectionId, uint32_t> Holders() const;

 private:
  using ActorEntry = ActorRoster::Records::value_type;
  struct Candidate {
    uint32_t group;
    absl::Duration remaining;  // ExpectedRemaining() of the newest holder.
  };

  void TakeBackUnserved(absl::Duration now);
  // Grants each ticket without a holder to the actor with the fewest tickets per runner.
  void GrantWaiting(absl::Duration now, Grants* grants);
  // Grants tickets that other actors hold to idle actors as well.
  void GrantCopies(absl::Duration now, Grants* grants);
  // Tickets with one to `most_holders` holders of which the newest is not just due to answer; the longest wait first.
  std::vector<Candidate> CopyCandidates(size_t most_holders, absl::Duration fastest, absl::Duration now) const;
  // Grants to `entry` the first of `candidates` that it does not have, if the wait for it exceeds `worth`. False: there
  // is none.
  bool GrantCopy(const std::vector<Candidate>& candidates, absl::Duration worth, absl::Duration now, ActorEntry* entry,
                 Grants* grants);
  void Give(uint32_t group, ActorEntry* entry, absl::Duration now, Grants* grants);
  // Whether the other actors would finish all open tickets before `actor` finishes this ticket and its successors.
  bool TooSlow(const ActorRecord& actor, const EnvGroup& group, absl::Duration fastest, absl::Duration now) const;
  std::vector<ActorEntry*> IdleActors(absl::Duration now);

  EnvGroups groups_;
  ActorRoster actors_;
  // Groups that are not relocatable, have no owner and wait to be granted, with the time of the first attempt.
  std::map<uint32_t, absl::Duration> unowned_since_;
};

}  // namespace skein
