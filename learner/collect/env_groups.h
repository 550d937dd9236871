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

namespace skein {

// Fragment `fragment` of env group `group` in the front iteration (`iteration` 0) or the one behind it (1); both are 0
// of asynchronous tickets.
struct Piece {
  uint32_t group = 0;
  uint32_t iteration = 0;
  uint32_t fragment = 0;
};

// One env group: E environments that are stepped together.
struct EnvGroup {
  uint64_t ticket_id = 0;  // Of its open ticket; 0 = none is open.
  TicketHolders holders;   // Of the open ticket.
  bool accepted = false;   // Its ticket was answered, and the data are being put in place.
  uint32_t to_come = 0;    // Fragments that are ordered and not committed; if there are any, one is open or accepted.
  uint64_t served = 0;     // Tickets ever committed.
  TicketState state;       // Where the next ticket continues.
  // Where the front and the iteration behind it began, each valid once a fragment of it is committed.
  std::array<TicketState, 2> begun_from;
  // Only where environments cannot be moved: the connection whose actor has them, and the ticket that their episodes
  // began with; 0 = the next one begins new episodes.
  std::optional<ConnectionId> owner;
  uint64_t episodes_since = 0;
  bool abandoned = false;  // Episodes of it were given up and not begun anew yet.
  uint32_t restarts = 0;
};

// What may be ordered: the env groups of a learner's share, their open tickets and where each group continues.
//   OpenIteration | OpenTickets -> Give -> Accept -> Commit -> EndIteration
// N environments of the run, one after the other, are cut into groups of E. A group has one open ticket at most; the
// next one continues from the state that the last one brought. In synchronous modes two iterations may be open: the
// front, and one behind it, in which a group goes on as soon as its part of the front is done. Where environments
// cannot be moved (`relocatable` false) a group belongs to the connection that was granted its ticket first. What
// becomes of a ticket that this connection does not answer cannot be told from outside, so the group begins new
// episodes then (Restart), under a new ticket. Pure: no I/O, no clock. Not thread-safe.
class EnvGroups {
 public:
  struct Options {
    uint32_t num_envs = 1;         // N, a multiple of envs_per_group.
    uint32_t envs_per_group = 1;   // E
    uint32_t steps = 1;            // Of a ticket.
    uint64_t first_ticket_id = 1;  // Ids count up from here,
    uint32_t rank = 0, ranks = 1;  // only those that are `rank` modulo `ranks`: no two ranks' are the same.
    uint32_t first_env = 0;        // Run-wide index of the first environment.
    uint32_t fragments = 1;        // Of each group in an iteration, one after the other.
    bool relocatable = true;       // EnvSpec::relocatable.
  };
  explicit EnvGroups(const Options& options);

  const std::vector<EnvGroup>& all() const { return groups_; }
  const EnvGroup& operator[](uint32_t group) const { return groups_[group]; }
  bool relocatable() const { return relocatable_; }
  // No iteration is open: tickets are those of OpenTickets.
  bool asynchronous() const { return versions_.empty(); }
  uint32_t FirstEnv(uint32_t group) const { return first_env_ + group * envs_per_group_; }
  // Episodes that were begun anew because their environments cannot be moved, ever.
  uint64_t restarted_episodes() const { return restarted_episodes_; }

  // Other environments of the run from now on, from their first episodes: all tickets are void.
  void TakeShare(uint32_t first_env, uint32_t num_envs);
  // `state` has N rows; the next tickets continue from it.
  void Restore(const TicketState& state);
  // Where the front begins, or, if none is open, where tickets continue: N rows. nullopt: not every group has a state.
  std::optional<TicketState> State() const;

  // Synchronous modes: `fragments` more tickets of each group. REQUIRES: one iteration is open at most.
  void OpenIteration(uint64_t policy_version);
  // Asynchronous mode: opens up to `count` tickets, one for each group that has none, groups that were served least
  // first. Returns how many were opened.
  uint32_t OpenTickets(uint32_t count);
  uint32_t open_tickets() const { return static_cast<uint32_t>(group_of_ticket_.size()); }
  // All that was ordered is committed.
  bool complete() const;
  // All that was ordered for the front is.
  bool front_complete() const;
  // Fragments that are ordered and not committed.
  uint32_t fragments_to_come() const;
  // Of them those of the iteration behind whose groups are still at the front.
  uint32_t fragments_behind() const;
  // All tickets are void, and so are commits of accepted ones.
  void CloseIteration();
  // Ends the front with the groups whose fragments of it are all committed, which it returns in order. The others' open
  // tickets are void; these groups continue from where the front began, or in new episodes if they cannot be moved.
  // REQUIRES: an iteration is open; what is accepted of the front is committed or reopened.
  std::vector<uint32_t> EndIteration();

  // The group of an open ticket; nullopt: the ticket is void.
  std::optional<uint32_t> Find(uint64_t ticket_id) const;
  bool IsOpen(uint64_t ticket_id) const { return group_of_ticket_.count(ticket_id) > 0; }
  // What the group's open or accepted ticket is for; past the last iteration if it has none.
  Piece Next(uint32_t group) const;
  // Groups whose open ticket has no holder, in the order in which they should be granted.
  std::vector<uint32_t> Waiting() const;
  // Whether the group's ticket may be granted to `actor`: where environments cannot be moved, to their owner only.
  bool MayGo(uint32_t group, const ConnectionId& actor) const;

  // `actor` gets the group's open ticket.
  v1::Ticket Give(uint32_t group, const ConnectionId& actor);
  // `actor` no longer holds the group's open ticket.
  void Release(uint32_t group, const ConnectionId& actor) { groups_[group].holders.Release(actor); }
  void TakeBack(uint32_t group, const ConnectionId& actor) { groups_[group].holders.TakeBack(actor); }
  // The connection is gone: what it holds is taken back, and what only it can continue begins anew.
  void Forget(const ConnectionId& actor);
  // If environments cannot be moved, the group begins new episodes under a new ticket; otherwise no effect.
  void Restart(uint32_t group);

  // The group's open ticket was answered.
  void Accept(uint32_t group);
  // The data of an accepted ticket are in place; `state` has E rows.
  void Commit(uint32_t group, TicketState state);
  // The data of an accepted ticket turned out to be unusable: its piece gets another ticket.
  void Reopen(uint32_t group);

 private:
  void Open(uint32_t group);
  void CloseTicket(uint32_t group);
  // Of the front: a fragment of it is committed.
  bool HasBegun(uint32_t group) const;

  uint32_t first_env_;
  const uint32_t envs_per_group_;
  const uint32_t steps_;
  const uint32_t ranks_;
  const uint32_t fragments_;
  const bool relocatable_;
  uint64_t next_ticket_id_;
  std::vector<uint64_t> versions_;  // Of the policies of open iterations, the front's first; none: asynchronous.
  std::vector<EnvGroup> groups_;
  std::map<uint64_t, uint32_t> group_of_ticket_;  // Open tickets only.
  uint64_t restarted_episodes_ = 0;
};

}  // namespace skein
