// SPDX-License-Identifier: Apache-2.0
#include "learner/ticket_office.h"

#include <algorithm>

namespace skein {

TicketOffice::TicketOffice(uint32_t num_envs, uint32_t envs_per_block, uint32_t steps, uint64_t first_ticket_id)
    : envs_per_block_(envs_per_block),
      steps_(steps),
      next_ticket_id_(std::max<uint64_t>(first_ticket_id, 1)),
      blocks_(num_envs / envs_per_block) {}

void TicketOffice::RestoreEnvState(const v1::Tensor& env_state) {
  const size_t bytes = env_state.data().size() / blocks_.size();
  for (size_t b = 0; b < blocks_.size(); ++b) {
    v1::Tensor state;
    state.set_name("env_state");
    state.set_dtype(v1::DATA_TYPE_FLOAT64);
    state.add_shape(envs_per_block_);
    state.add_shape(env_state.shape(1));
    state.set_data(env_state.data().substr(b * bytes, bytes));
    blocks_[b].state = std::move(state);
  }
}

std::optional<v1::Tensor> TicketOffice::EnvState() const {
  v1::Tensor all;
  for (const Block& block : blocks_) {
    if (!block.state) return std::nullopt;
    all.mutable_data()->append(block.state->data());
  }
  all.set_name("env_state");
  all.set_dtype(v1::DATA_TYPE_FLOAT64);
  all.add_shape(static_cast<int64_t>(blocks_.size()) * envs_per_block_);
  all.add_shape(blocks_[0].state->shape(1));
  return all;
}

void TicketOffice::OpenIteration(uint64_t policy_version) {
  policy_version_ = policy_version;
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].ticket_id = next_ticket_id_++;
    blocks_[b].holder.reset();
    block_of_ticket_[blocks_[b].ticket_id] = b;
  }
  open_blocks_ = static_cast<uint32_t>(blocks_.size());
}

void TicketOffice::CloseIteration() {
  for (Block& block : blocks_) {
    ReleaseHolder(&block);
    block.ticket_id = 0;
    block.redeemed = false;
  }
  block_of_ticket_.clear();
  open_blocks_ = 0;
}

void TicketOffice::AddActor(const ActorKey& actor, uint32_t credits, uint32_t runners) {
  RemoveActor(actor);
  actors_[actor] = {std::max(credits, 1u), std::max(runners, 1u), 0};
}

void TicketOffice::RemoveActor(const ActorKey& actor) {
  for (Block& block : blocks_) {
    if (block.holder == actor) ReleaseHolder(&block);
  }
  actors_.erase(actor);
}

void TicketOffice::ReleaseHolder(Block* block) {
  if (!block->holder) return;
  auto it = actors_.find(*block->holder);
  if (it != actors_.end() && it->second.held > 0) --it->second.held;
  block->holder.reset();
}

std::vector<std::pair<ActorKey, v1::Ticket>> TicketOffice::Grant() {
  std::vector<std::pair<ActorKey, v1::Ticket>> grants;
  uint32_t runners = 0;
  for (const auto& [key, actor] : actors_) runners += actor.runners;
  uint32_t ungranted = 0;
  for (const Block& block : blocks_) ungranted += block.ticket_id != 0 && !block.holder;
  for (uint32_t b = 0; b < blocks_.size() && ungranted > 0; ++b) {
    Block& block = blocks_[b];
    if (block.ticket_id == 0 || block.holder) continue;
    std::pair<const ActorKey, Actor>* best = nullptr;
    for (auto& entry : actors_) {
      const Actor& actor = entry.second;
      const bool may = actor.held < actor.runners || (actor.held < actor.credits && ungranted > runners);
      if (!may) continue;
      // held / runners, compared without division.
      if (best == nullptr ||
          uint64_t{actor.held} * best->second.runners < uint64_t{best->second.held} * actor.runners) {
        best = &entry;
      }
    }
    if (best == nullptr) break;
    ++best->second.held;
    --ungranted;
    block.holder = best->first;
    v1::Ticket ticket;
    ticket.set_id(block.ticket_id);
    ticket.set_policy_version(policy_version_);
    ticket.set_first_env(b * envs_per_block_);
    ticket.set_num_envs(envs_per_block_);
    ticket.set_steps(steps_);
    if (block.state) *ticket.mutable_env_state() = *block.state;
    grants.emplace_back(best->first, std::move(ticket));
  }
  return grants;
}

std::optional<uint32_t> TicketOffice::BlockOf(uint64_t ticket_id) const {
  auto it = block_of_ticket_.find(ticket_id);
  return it == block_of_ticket_.end() ? std::nullopt : std::optional<uint32_t>(it->second);
}

std::optional<uint32_t> TicketOffice::Redeem(uint64_t ticket_id) {
  auto it = block_of_ticket_.find(ticket_id);
  if (it == block_of_ticket_.end()) return std::nullopt;
  const uint32_t b = it->second;
  block_of_ticket_.erase(it);
  ReleaseHolder(&blocks_[b]);
  blocks_[b].ticket_id = 0;
  blocks_[b].redeemed = true;
  return b;
}

void TicketOffice::Commit(uint32_t block, v1::Tensor state) {
  if (!blocks_[block].redeemed) return;
  blocks_[block].redeemed = false;
  blocks_[block].state = std::move(state);
  --open_blocks_;
}

void TicketOffice::Refuse(uint64_t ticket_id) {
  auto it = block_of_ticket_.find(ticket_id);
  if (it != block_of_ticket_.end()) ReleaseHolder(&blocks_[it->second]);
}

std::map<ActorKey, uint32_t> TicketOffice::Holders() const {
  std::map<ActorKey, uint32_t> holders;
  for (const Block& block : blocks_) {
    if (block.holder) ++holders[*block.holder];
  }
  return holders;
}

}  // namespace skein
