// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "learner/step_ledger.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Decides who collects what.   OpenIteration -> Grant -> Redeem -> Commit (once per block) -> complete
// The run's N environments are split into blocks of E; one iteration is one ticket per block. A ticket carries the
// block's environment state, so any actor can serve it with the same result: fast actors are granted more, and the
// tickets of an actor that went away are granted again.
// Pure: no I/O, no clock. Not thread-safe.
class TicketOffice {
 public:
  // REQUIRES: num_envs a multiple of envs_per_block. Ticket ids count up from `first_ticket_id`.
  TicketOffice(uint32_t num_envs, uint32_t envs_per_block, uint32_t steps, uint64_t first_ticket_id);

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  int num_actors() const { return static_cast<int>(actors_.size()); }

  // `env_state` float64 [num_envs, S] row-major bytes; the next iteration continues from it.
  void RestoreEnvState(const v1::Tensor& env_state);
  // All blocks' states as one tensor "env_state" [num_envs, S]; nullopt before the first complete iteration.
  std::optional<v1::Tensor> EnvState() const;

  // Makes one ticket per block, to be served with `policy_version`. REQUIRES: complete().
  void OpenIteration(uint64_t policy_version);
  // Every block of the last iteration has been committed, or none was opened.
  bool complete() const { return open_blocks_ == 0; }
  // Voids all open tickets; commits of redeemed ones have no effect any more.
  void CloseIteration();

  // `credits` >= 1: tickets the actor may hold; `runners` >= 1: those it can work on at once.
  void AddActor(const ActorKey& actor, uint32_t credits, uint32_t runners);
  // Its tickets can be granted again at once (and redeemed by it still, if it comes back first).
  void RemoveActor(const ActorKey& actor);

  // Tickets to send now, each to the actor that holds the fewest per runner. An actor gets more than it can work on
  // at once only while every runner can still have one, so that nobody sits on the last tickets.
  std::vector<std::pair<ActorKey, v1::Ticket>> Grant();

  // The block of an open ticket.
  std::optional<uint32_t> BlockOf(uint64_t ticket_id) const;
  // The block index if `ticket_id` is open: the ticket is then redeemed and cannot be again. nullopt: it is void.
  std::optional<uint32_t> Redeem(uint64_t ticket_id);
  // The data of a redeemed block are in place; `state` float64 [E, S] is where its next ticket continues.
  void Commit(uint32_t block, v1::Tensor state);
  // A batch for the ticket was refused: it is granted again.
  void Refuse(uint64_t ticket_id);

  // For people: actors that hold open tickets now, with how many.
  std::map<ActorKey, uint32_t> Holders() const;

 private:
  struct Block {
    uint64_t ticket_id = 0;  // 0 = not open.
    bool redeemed = false;   // Between Redeem and Commit.
    std::optional<ActorKey> holder;
    std::optional<v1::Tensor> state;
  };
  struct Actor {
    uint32_t credits = 1;
    uint32_t runners = 1;
    uint32_t held = 0;
  };
  void ReleaseHolder(Block* block);

  const uint32_t envs_per_block_;
  const uint32_t steps_;
  uint64_t next_ticket_id_;
  uint64_t policy_version_ = 0;
  uint32_t open_blocks_ = 0;
  std::vector<Block> blocks_;
  std::map<uint64_t, uint32_t> block_of_ticket_;  // Open tickets only.
  std::map<ActorKey, Actor> actors_;
};

}  // namespace skein
