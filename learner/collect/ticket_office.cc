// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/ticket_office.h"

#include <algorithm>

namespace skein {
namespace {

// Of those who had a ticket that is still open, so many can redeem it yet.
constexpr size_t kMostFormer = 64;

}  // namespace

TicketOffice::TicketOffice(const Options& options)
    : first_env_(options.first_env),
      envs_per_block_(options.envs_per_block),
      steps_(options.steps),
      ranks_(options.ranks),
      fragments_(options.fragments),
      next_ticket_id_(std::max<uint64_t>(options.first_ticket_id, 1)),
      blocks_(options.num_envs / options.envs_per_block) {
  next_ticket_id_ += (options.rank + ranks_ - next_ticket_id_ % ranks_) % ranks_;
}

void TicketOffice::TakeShare(uint32_t first_env, uint32_t num_envs) {
  CloseIteration();
  first_env_ = first_env;
  blocks_.assign(num_envs / envs_per_block_, Block());
}

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
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    const std::optional<v1::Tensor>& state = BeginningOfFront(b);
    if (!state) return std::nullopt;
    all.mutable_data()->append(state->data());
  }
  all.set_name("env_state");
  all.set_dtype(v1::DATA_TYPE_FLOAT64);
  all.add_shape(static_cast<int64_t>(blocks_.size()) * envs_per_block_);
  all.add_shape(BeginningOfFront(0)->shape(1));
  return all;
}

TicketOffice::Piece TicketOffice::Next(uint32_t b) const {
  if (versions_.empty()) return {b, 0, 0};
  const uint32_t committed = fragments_ * static_cast<uint32_t>(versions_.size()) - blocks_[b].to_come;
  return {b, committed / fragments_, committed % fragments_};
}

const std::optional<v1::Tensor>& TicketOffice::BeginningOfFront(uint32_t b) const {
  const Piece next = Next(b);
  return next.iteration > 0 || next.fragment > 0 ? blocks_[b].begun_from[0] : blocks_[b].state;
}

void TicketOffice::Open(uint32_t b) {
  blocks_[b].ticket_id = next_ticket_id_;
  next_ticket_id_ += ranks_;
  blocks_[b].holders.clear();
  blocks_[b].former.clear();
  blocks_[b].taken_back = false;
  block_of_ticket_[blocks_[b].ticket_id] = b;
}

void TicketOffice::OpenIteration(uint64_t policy_version) {
  versions_.push_back(policy_version);
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].to_come == 0) Open(b);
    blocks_[b].to_come += fragments_;
  }
}

uint32_t TicketOffice::OpenTickets(uint32_t count) {
  std::vector<uint32_t> free;
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].to_come == 0) free.push_back(b);
  }
  std::stable_sort(free.begin(), free.end(),
                   [this](uint32_t a, uint32_t b) { return blocks_[a].served < blocks_[b].served; });
  if (free.size() > count) free.resize(count);
  for (uint32_t b : free) {
    blocks_[b].to_come = 1;
    Open(b);
  }
  return static_cast<uint32_t>(free.size());
}

bool TicketOffice::complete() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.to_come == 0; });
}

void TicketOffice::CloseIteration() {
  for (Block& block : blocks_) {
    ReleaseHolders(&block);
    block.ticket_id = 0;
    block.redeemed = false;
    block.to_come = 0;
  }
  block_of_ticket_.clear();
  versions_.clear();
}

std::vector<uint32_t> TicketOffice::EndIteration() {
  std::vector<uint32_t> done, short_of_it;
  for (uint32_t b = 0; b < blocks_.size(); ++b) (Next(b).iteration > 0 ? done : short_of_it).push_back(b);
  if (!short_of_it.empty()) {
    // What an actor should have answered before this iteration's end and has not, it dropped.
    for (auto& [key, actor] : actors_) {
      std::erase_if(actor.held, [this](const auto& held) { return block_of_ticket_.count(held.first) == 0; });
      actor.dropped.clear();
    }
  }
  for (uint32_t b : short_of_it) {
    Block& block = blocks_[b];
    if (Next(b).fragment > 0) block.state = std::move(block.begun_from[0]);
    block_of_ticket_.erase(block.ticket_id);
    block.ticket_id = 0;
    block.holders.clear();
  }
  versions_.erase(versions_.begin());
  for (uint32_t b : done) blocks_[b].begun_from[0] = std::move(blocks_[b].begun_from[1]);
  for (uint32_t b : short_of_it) {
    blocks_[b].to_come = fragments_ * static_cast<uint32_t>(versions_.size());
    if (blocks_[b].to_come > 0) Open(b);
  }
  return done;
}

void TicketOffice::AddActor(const ActorKey& actor, uint32_t credits, uint32_t runners) {
  RemoveActor(actor);
  Actor& added = actors_[actor];
  added.runners = std::clamp(runners, 1u, kMostRunners);
  added.credits = std::clamp(credits, 1u, 2 * added.runners);
  added.standing = absent_.Take(actor);
  added.last_grant = ++grants_;  // After those who are here: nobody gains by connecting again.
}

bool TicketOffice::LetGo(const ActorKey& actor, Block* block) {
  const auto held = std::find(block->holders.begin(), block->holders.end(), actor);
  if (held == block->holders.end()) return false;
  block->holders.erase(held);
  block->former.erase(std::remove(block->former.begin(), block->former.end(), actor), block->former.end());
  block->former.push_back(actor);
  if (block->former.size() > kMostFormer) block->former.erase(block->former.begin());
  return true;
}

void TicketOffice::RemoveActor(const ActorKey& actor) {
  for (Block& block : blocks_) {
    if (LetGo(actor, &block)) block.taken_back = true;
  }
  const auto it = actors_.find(actor);
  if (it == actors_.end()) return;
  absent_.Keep(actor, it->second.standing);
  actors_.erase(it);
}

void TicketOffice::ReleaseHolders(Block* block) {
  for (const ActorKey& holder : block->holders) {
    if (auto it = actors_.find(holder); it != actors_.end()) it->second.held.erase(block->ticket_id);
  }
  block->holders.clear();
}

v1::Ticket TicketOffice::Give(uint32_t b, ActorEntry* actor, absl::Duration now) {
  Block& block = blocks_[b];
  block.holders.push_back(actor->first);
  actor->second.held[block.ticket_id] = now;
  actor->second.last_grant = ++grants_;
  v1::Ticket ticket;
  ticket.set_id(block.ticket_id);
  ticket.set_policy_version(versions_.empty() ? 0 : versions_[Next(b).iteration]);
  ticket.set_first_env(FirstEnv(b));
  ticket.set_num_envs(envs_per_block_);
  ticket.set_steps(steps_);
  if (block.state) *ticket.mutable_env_state() = *block.state;
  return ticket;
}

std::vector<std::pair<ActorKey, v1::Ticket>> TicketOffice::Grant(absl::Duration now) {
  std::vector<std::pair<ActorKey, v1::Ticket>> grants;
  TakeBackUnserved(now);
  GrantOpen(now, &grants);
  if (BestService() == absl::ZeroDuration()) {
    GrantUnanswered(now, &grants);
  } else if (!versions_.empty()) {
    GrantLate(now, &grants);
  }
  return grants;
}

bool TicketOffice::Actor::GoesBefore(const Actor& other) const {
  // held / runners, compared without division.
  const size_t mine = held.size() * other.runners, others = other.held.size() * runners;
  return mine != others ? mine < others : last_grant < other.last_grant;
}

void TicketOffice::GrantOpen(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  uint64_t runners = 0;
  for (const auto& [key, actor] : actors_) runners += actor.Runners(now);
  std::vector<uint32_t> ungranted;
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].ticket_id != 0 && blocks_[b].holders.empty()) ungranted.push_back(b);
  }
  // The longest row of fragments still to come begins first, so those of the front do; of equal ones the ticket that
  // has waited longest.
  std::sort(ungranted.begin(), ungranted.end(), [this](uint32_t a, uint32_t b) {
    if (blocks_[a].to_come != blocks_[b].to_come) return blocks_[a].to_come > blocks_[b].to_come;
    return blocks_[a].ticket_id < blocks_[b].ticket_id;
  });
  size_t left = ungranted.size();
  for (const Block& block : blocks_) {
    if (block.to_come > fragments_) left += fragments_;  // At the front, all of the iteration behind is to come.
  }
  for (uint32_t b : ungranted) {
    ActorEntry* best = nullptr;
    for (auto& entry : actors_) {
      const Actor& actor = entry.second;
      if (actor.overdue.count(blocks_[b].ticket_id) > 0) continue;  // It has it.
      const bool may = actor.Idle(now) || (actor.held.size() < actor.Credits(now) && left > runners);
      if (!may || (best != nullptr && !actor.GoesBefore(best->second))) continue;
      if (!TooSlow(actor, blocks_[b], now)) best = &entry;
    }
    if (best == nullptr) continue;
    grants->emplace_back(best->first, Give(b, best, now));
    --left;
  }
}

std::optional<TicketOffice::Piece> TicketOffice::PieceOf(uint64_t ticket_id) const {
  auto it = block_of_ticket_.find(ticket_id);
  return it == block_of_ticket_.end() ? std::nullopt : std::optional<Piece>(Next(it->second));
}

bool TicketOffice::GrantedTo(const ActorKey& actor, uint64_t ticket_id) const {
  const auto it = block_of_ticket_.find(ticket_id);
  if (it == block_of_ticket_.end()) return false;
  const Block& block = blocks_[it->second];
  const auto same = [&actor](const ActorKey& holder) {
    return holder.actor_id == actor.actor_id && holder.certificate == actor.certificate;
  };
  return std::any_of(block.holders.begin(), block.holders.end(), same) ||
         std::any_of(block.former.begin(), block.former.end(), same);
}

std::optional<TicketOffice::Piece> TicketOffice::Redeem(const ActorKey& actor, uint64_t ticket_id, absl::Duration now) {
  const bool granted = GrantedTo(actor, ticket_id);
  Return(actor, ticket_id, now);
  auto it = block_of_ticket_.find(ticket_id);
  if (it == block_of_ticket_.end() || !granted) return std::nullopt;
  const uint32_t b = it->second;
  block_of_ticket_.erase(it);
  blocks_[b].holders.clear();  // Another holder is still at work on it: the ticket stays in its hand.
  blocks_[b].ticket_id = 0;
  blocks_[b].redeemed = true;
  return Next(b);
}

void TicketOffice::Commit(uint32_t b, v1::Tensor state) {
  Block& block = blocks_[b];
  if (!block.redeemed) return;
  block.redeemed = false;
  const Piece piece = Next(b);
  if (piece.fragment == 0) block.begun_from[piece.iteration] = std::move(block.state);
  block.state = std::move(state);
  ++block.served;
  if (--block.to_come > 0) Open(b);
}

void TicketOffice::Reopen(uint32_t b) {
  if (!blocks_[b].redeemed) return;
  blocks_[b].redeemed = false;
  Open(b);
}

void TicketOffice::Refuse(const ActorKey& actor, uint64_t ticket_id) { Return(actor, ticket_id, std::nullopt); }

std::map<ActorKey, uint32_t> TicketOffice::Holders() const {
  std::map<ActorKey, uint32_t> holders;
  for (const Block& block : blocks_) {
    for (const ActorKey& holder : block.holders) ++holders[holder];
  }
  for (const auto& [key, actor] : actors_) {
    for (const auto& [ticket_id, granted] : actor.overdue) {
      const auto open = block_of_ticket_.find(ticket_id);
      if (open != block_of_ticket_.end() && blocks_[open->second].holders.empty()) ++holders[key];
    }
  }
  return holders;
}

}  // namespace skein
