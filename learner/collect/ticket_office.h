// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "learner/collect/actor_standing.h"
#include "learner/collect/step_ledger.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Decides who collects what.   OpenIteration | OpenTickets -> Grant -> Redeem -> Commit -> EndIteration
// N environments of the run, one after the other, are split into blocks of E. A ticket is an order for one fragment of
// one block; a block has at most one open ticket, and the next continues from the state the last one brought back. A
// ticket carries that state, so any actor can serve it with the same result: fast actors are granted more, the tickets
// of an actor that went away are granted again, and a ticket that its holder is late with is granted to a second actor
// as well; the first to answer redeems it. While nobody who is here has answered, all who are idle get what is 5 s old
// in turn. What an actor leaves unserved for long is taken back, in all modes, and it gets less from then on
// (ActorStanding); it can redeem it still, if nobody has been faster. In synchronous modes two iterations may be open:
// the front, and one behind it, in which a block goes on as soon as its part of the front is done. Pure: no I/O, no
// clock (`now` counts from any fixed moment). Not thread-safe.
class TicketOffice {
 public:
  struct Options {
    uint32_t num_envs = 1;         // N, a multiple of envs_per_block.
    uint32_t envs_per_block = 1;   // E
    uint32_t steps = 1;            // Of a ticket.
    uint64_t first_ticket_id = 1;  // Ids count up from here,
    uint32_t rank = 0, ranks = 1;  // only such as are `rank` modulo `ranks`: no two ranks' are the same.
    uint32_t first_env = 0;        // Run-wide index of the first environment.
    uint32_t fragments = 1;        // Of each block in an iteration, one after the other.
  };
  explicit TicketOffice(const Options& options);
  TicketOffice(uint32_t num_envs, uint32_t envs_per_block, uint32_t steps, uint64_t first_ticket_id)
      : TicketOffice(Options{num_envs, envs_per_block, steps, first_ticket_id}) {}

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  int num_actors() const { return static_cast<int>(actors_.size()); }

  // Other environments of the run from now on: all tickets are void, as if nothing had been ordered; actors stay.
  void TakeShare(uint32_t first_env, uint32_t num_envs);
  // `env_state` float64 [num_envs, S] row-major bytes; the next tickets continue from it.
  void RestoreEnvState(const v1::Tensor& env_state);
  // Where the front begins, or, if none is open, where tickets continue: all blocks' states as one tensor "env_state"
  // [num_envs, S]; nullopt before every block has one.
  std::optional<v1::Tensor> EnvState() const;

  // Synchronous modes: `fragments` more tickets of each block, to be served with `policy_version`.
  // REQUIRES: one iteration is open at most.
  void OpenIteration(uint64_t policy_version);
  // Asynchronous mode: opens up to `count` tickets, one for each block that has none, those first that were served
  // least; whoever serves one takes its newest policy. No second actor is asked while the first is not long overdue,
  // once anybody who is here has answered. Returns how many were opened.
  uint32_t OpenTickets(uint32_t count);
  // Neither redeemed nor void.
  uint32_t open_tickets() const { return static_cast<uint32_t>(block_of_ticket_.size()); }
  // All that has been ordered is committed.
  bool complete() const;
  // Voids all open tickets; commits of redeemed ones have no effect any more.
  void CloseIteration();
  // Synchronous modes: ends the front with the blocks whose fragments of it are all committed, which it returns in
  // order; what they have of the one behind stays, and that is the front now. Open tickets of the others are void but
  // stay in their holders' hands, and those blocks continue from where the front began. REQUIRES: an iteration is open;
  // what is redeemed of the front is committed or reopened.
  std::vector<uint32_t> EndIteration();

  // `credits`: tickets the actor may hold; `runners`: those it can work on at once. As an actor says, within 1 to
  // kMostRunners, and credits within twice the runners; what is beyond is taken for the limit.
  static constexpr uint32_t kMostRunners = 1024;
  void AddActor(const ActorKey& actor, uint32_t credits, uint32_t runners);
  // Its tickets can be granted again at once (and redeemed by it still, if it comes back first).
  void RemoveActor(const ActorKey& actor);

  // Tickets to send now, those of the front first, each to the actor that holds the fewest per runner; of equals, to
  // the one whose last grant is the oldest: all have their turn where there are more actors than tickets. An actor gets
  // more than it can work on at once only while every runner can still have one, be it of the iteration behind, so that
  // nobody sits on the last tickets. An actor that is known to be so slow that it would hold up what is open gets none
  // while others can do the work.
  std::vector<std::pair<ActorKey, v1::Ticket>> Grant(absl::Duration now);

  // Run-wide index of a block's first environment.
  uint32_t FirstEnv(uint32_t block) const { return first_env_ + block * envs_per_block_; }
  // Fragment `fragment` of block `block` in the front (`iteration` 0) or the one behind (1); both are 0 of OpenTickets.
  struct Piece {
    uint32_t block = 0;
    uint32_t iteration = 0;
    uint32_t fragment = 0;
  };
  // What an open ticket is for.
  std::optional<Piece> PieceOf(uint64_t ticket_id) const;
  // Whether an open ticket was granted to `actor`, as it is now or in another stay of the same member, which takes
  // along what it has begun.
  bool GrantedTo(const ActorKey& actor, uint64_t ticket_id) const;
  // `actor` answered. The piece if `ticket_id` is open and was granted to it: it is then redeemed and cannot be again.
  // nullopt: it is void or another's.
  std::optional<Piece> Redeem(const ActorKey& actor, uint64_t ticket_id, absl::Duration now);
  // The data of a redeemed ticket are in place; `state` float64 [E, S] is where the block's next ticket continues.
  void Commit(uint32_t block, v1::Tensor state);
  // The data of a redeemed ticket turned out to be unusable: its piece gets another ticket.
  void Reopen(uint32_t block);
  // `actor` answered with something unusable: the ticket is granted again.
  void Refuse(const ActorKey& actor, uint64_t ticket_id);

  // For people: actors that hold open tickets now, or are overdue with them, with how many.
  std::map<ActorKey, uint32_t> Holders() const;

 private:
  struct Block {
    uint64_t ticket_id = 0;  // 0 = not open.
    bool redeemed = false;   // Between Redeem and Commit.
    uint32_t to_come = 0;    // Fragments that are ordered and not committed; if there are, one is open or redeemed.
    uint64_t served = 0;     // Tickets ever committed.
    std::vector<ActorKey> holders;
    std::vector<ActorKey> former;     // Had it and may yet come with it, the newest so many.
    bool taken_back = false;          // From an actor that went away: how long the ticket takes now says nothing.
    std::optional<v1::Tensor> state;  // Where the next ticket continues.
    // Where the front and the one behind began, each as soon as a fragment of it is committed.
    std::array<std::optional<v1::Tensor>, 2> begun_from;
  };
  struct Actor {
    uint32_t credits = 1;
    uint32_t runners = 1;
    // Tickets it has not answered, also void ones, with when each was granted,
    std::map<uint64_t, absl::Duration> held;
    std::map<uint64_t, absl::Duration> dropped;  // void ones that it seems to have dropped, the newest so many,
    std::map<uint64_t, absl::Duration> overdue;  // and those that nobody waits for any more, the newest so many.
    ActorStanding standing;
    uint64_t last_grant = 0;  // Of all grants and arrivals, its last was this one.
    absl::Duration service;   // What a ticket takes one of its runners, averaged; 0 = unknown.
    absl::Duration measured;  // When `service` last changed.
    // It can work on, or hold, so many.
    uint32_t Runners(absl::Duration now) const { return std::min(runners, standing.Most(now)); }
    uint32_t Credits(absl::Duration now) const { return std::min(credits, standing.Most(now)); }
    bool Idle(absl::Duration now) const { return held.size() < Runners(now); }
    bool GoesBefore(const Actor& other) const;
  };
  using ActorEntry = std::pair<const ActorKey, Actor>;

  void Open(uint32_t block);
  // What the block's open or redeemed ticket is for; past the last iteration if there is none.
  Piece Next(uint32_t block) const;
  const std::optional<v1::Tensor>& BeginningOfFront(uint32_t block) const;
  // `now` tells how long it took; nullopt: it was no real answer.
  void Return(const ActorKey& actor, uint64_t ticket_id, std::optional<absl::Duration> now);
  // False: it did not hold the block's ticket.
  static bool LetGo(const ActorKey& actor, Block* block);
  void ReleaseHolders(Block* block);
  // What has not been served for long is granted to others, and its holders get less.
  void TakeBackUnserved(absl::Duration now);
  absl::Duration BestService() const;
  bool TrialIsDue(const Actor& actor, absl::Duration now) const;
  bool TooSlow(const Actor& actor, const Block& block, absl::Duration now) const;
  absl::Duration ExpectedRemaining(const Block& block, absl::Duration now) const;
  void GrantOpen(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants);
  // To `entry`, of the tickets that others hold, `most_holders` at most, the one that will take its newest holder
  // longest and longer than `worth`; false: there is none.
  bool GrantAnother(absl::Duration worth, size_t most_holders, ActorEntry* entry, absl::Duration now,
                    std::vector<std::pair<ActorKey, v1::Ticket>>* grants);
  // Nobody who is here has answered yet: those who are idle get what others have had for long, one each in turn.
  void GrantUnanswered(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants);
  void GrantLate(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants);
  v1::Ticket Give(uint32_t block, ActorEntry* actor, absl::Duration now);

  uint32_t first_env_;
  const uint32_t envs_per_block_;
  const uint32_t steps_;
  const uint32_t ranks_;
  const uint32_t fragments_;
  uint64_t next_ticket_id_;
  std::vector<uint64_t> versions_;  // Of the policies of open iterations, the front's first; none: asynchronous.
  std::vector<Block> blocks_;
  std::map<uint64_t, uint32_t> block_of_ticket_;  // Open tickets only.
  std::map<ActorKey, Actor> actors_;
  AbsentStandings absent_;
  uint64_t grants_ = 0;
};

}  // namespace skein
