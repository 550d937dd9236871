// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "learner/collect/connection_id.h"
#include "learner/collect/ticket_holders.h"
#include "learner/collect/ticket_state.h"
#include "skein/v1/trajectory.pb.h"

// The env groups of a learner: their states, and the pieces of work that may be ordered.
namespace skein {

// Fragment `fragment` of env group `group` in the front iteration (`iteration` 0) or the one behind it (1). For
// asynchronous tickets iteration and fragment are 0.
struct Piece {
  uint32_t group = 0;
  uint32_t iteration = 0;
  uint32_t fragment = 0;
};

// The state of one env group: E environments that one runner steps together.
struct EnvGroup {
  uint64_t ticket_id = 0;  // Of its open ticket; 0 = none is open.
  TicketHolders holders;   // Of the open ticket.
  bool accepted = false;   // Its ticket was answered, and the data are being copied into place.
  uint32_t to_come = 0;    // Fragments ordered and not committed; if > 0, one ticket is open or accepted.
  uint64_t served = 0;     // Tickets ever committed.
  TicketState state;       // Where the next ticket continues.
  // The states that the front and the iteration behind it began from, each valid once a fragment of it is committed.
  std::array<TicketState, 2> begun_from;
  // Only for environments that are not relocatable: the connection of the actor that has them, and the ticket that
  // their episodes began with; 0 = the next one begins new episodes.
  std::optional<ConnectionId> owner;
  uint64_t episodes_since = 0;
  bool abandoned = false;  // Its episodes were given up; new ones have not begun yet.
  uint32_t restarts = 0;
};

// The env groups of a learner's share, their open tickets and the state from which each group continues.
//   OpenIteration | OpenTickets -> Give -> Accept -> Commit -> EndIteration
// N successive environments of the run are divided into groups of E. A group has at most one open ticket; its next
// ticket continues from the state that the last fragment brought. In synchronous modes two iterations may be open: the
// front, and one behind it, which a group starts as soon as its part of the front is done. A group whose environments
// are not relocatable belongs to the connection that was granted its ticket first. If that connection does not answer a
// ticket, the state of its environments is unknown; the group then begins new episodes under a new ticket (Restart).
// Pure: no I/O, no clock. Not thread-safe.
class EnvGroups {
 public:
  struct Options {
    uint32_t share_envs = 1;       // N, a multiple of envs_per_group.
    uint32_t envs_per_group = 1;   // E
    uint32_t steps = 1;            // Of a ticket.
    uint64_t first_ticket_id = 1;  // Ids rise from here;
    uint32_t rank = 0, ranks = 1;  // only ids equal to `rank` modulo `ranks` are used, so ranks never share an id.
    uint32_t first_env = 0;        // Run-wide index of the first environment.
    uint32_t fragments = 1;        // Of each group in an iteration, one after the other.
    bool relocatable = true;       // EnvSpec::relocatable.
  };
  explicit EnvGroups(const Options& options);

  const std::vector<EnvGroup>& all() const { return groups_; }
  const EnvGroup& operator[](uint32_t group) const { return groups_[group]; }
  bool relocatable() const { return relocatable_; }
  // No iteration is open: tickets come from OpenTickets.
  bool asynchronous() const { return open_.empty(); }
  uint32_t FirstEnv(uint32_t group) const { return first_env_ + group * envs_per_group_; }
  // Total of episodes restarted because their environments are not relocatable.
  uint64_t restarted_episodes() const { return restarted_episodes_; }

  // Switches to other environments of the run, which begin their first episodes. All tickets become void.
  void TakeShare(uint32_t first_env, uint32_t share_envs);
  // `state` has N rows; the next tickets continue from it.
  void Restore(const TicketState& state);
  // The state that the front begins from, or, if none is open, that tickets continue from: N rows. nullopt: a group has
  // no state yet.
  std::optional<TicketState> State() const;

  // Synchronous modes: orders `fragments` more tickets of each group, with environments of `env_phase` (Ticket.phase).
  // REQUIRES: at most one iteration is open.
  void OpenIteration(uint64_t policy_version, uint32_t env_phase = 0);
  // Asynchronous mode: the phase of tickets granted from now on.
  void SetEnvPhase(uint32_t env_phase) { env_phase_ = env_phase; }
  // Asynchronous mode: opens up to `count` tickets, one for each group that has none; groups with the fewest committed
  // tickets come first. Returns how many were opened.
  uint32_t OpenTickets(uint32_t count);
  uint32_t open_tickets() const { return static_cast<uint32_t>(group_of_ticket_.size()); }
  // All ordered fragments are committed.
  bool complete() const;
  // All fragments ordered for the front are committed.
  bool front_complete() const;
  // Fragments ordered and not committed.
  uint32_t fragments_to_come() const;
  // Of these, the fragments of the iteration behind whose groups have not finished the front.
  uint32_t fragments_behind() const;
  // Voids all tickets; commits of accepted tickets have no effect afterwards.
  void CloseIteration();
  // Ends the front. Returns, in order, the groups that have committed all their fragments of it. The other groups' open
  // tickets become void; these groups continue from where the front began, or in new episodes if not relocatable.
  // REQUIRES: an iteration is open; every accepted ticket of the front is committed or reopened.
  std::vector<uint32_t> EndIteration();

  // The group of an open ticket; nullopt: the ticket is void.
  std::optional<uint32_t> Find(uint64_t ticket_id) const;
  bool IsOpen(uint64_t ticket_id) const { return group_of_ticket_.count(ticket_id) > 0; }
  // The piece of the group's open or accepted ticket; past the last iteration if it has none.
  Piece Next(uint32_t group) const;
  // Groups whose open ticket has no holder, in the order in which to grant them.
  std::vector<uint32_t> Waiting() const;
  // How many groups each owner has, if environments are not relocatable.
  std::map<ConnectionId, uint32_t> Owned() const;
  // Whether the group's ticket may be granted to `actor`: to the owner only if environments are not relocatable.
  bool MayGo(uint32_t group, const ConnectionId& actor) const;

  // Grants the group's open ticket to `actor`.
  v1::Ticket Give(uint32_t group, const ConnectionId& actor);
  // `actor` no longer holds the group's open ticket.
  void Release(uint32_t group, const ConnectionId& actor) { groups_[group].holders.Release(actor); }
  void TakeBack(uint32_t group, const ConnectionId& actor) { groups_[group].holders.TakeBack(actor); }
  // The connection is closed: its tickets are taken back, and groups that it owns begin new episodes.
  void Forget(const ConnectionId& actor);
  // The group begins new episodes under a new ticket if environments are not relocatable; otherwise no effect.
  void Restart(uint32_t group);

  // The group's open ticket was answered.
  void Accept(uint32_t group);
  // The data of an accepted ticket are in place; `state` has E rows.
  void Commit(uint32_t group, TicketState state);
  // The data of an accepted ticket are unusable: its piece gets another ticket.
  void Reopen(uint32_t group);

 private:
  void Open(uint32_t group);
  void CloseTicket(uint32_t group);
  // Whether a fragment of the front is committed.
  bool HasBegun(uint32_t group) const;

  uint32_t first_env_;
  const uint32_t envs_per_group_;
  const uint32_t steps_;
  const uint32_t ranks_;
  const uint32_t fragments_;
  const bool relocatable_;
  uint64_t next_ticket_id_;
  struct OpenOrder {
    uint64_t policy_version;
    uint32_t env_phase;
  };
  std::vector<OpenOrder> open_;  // Of open iterations, the front's first; empty: asynchronous.
  uint32_t env_phase_ = 0;       // Asynchronous.
  std::vector<EnvGroup> groups_;
  std::map<uint64_t, uint32_t> group_of_ticket_;  // Open tickets only.
  uint64_t restarted_episodes_ = 0;
};

}  // namespace skein
