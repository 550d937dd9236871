// SPDX-License-Identifier: Apache-2.0
#include "learner/ticket_office.h"

#include <algorithm>

namespace skein {
namespace {

// Weight of the newest time in an actor's average.
constexpr double kNewest = 0.3;
// An actor is only ever passed over if it takes this many times as long as the fastest.
constexpr double kSlow = 2;
// Less than this is not worth a second actor's time, nor passing one over.
constexpr absl::Duration kWorthwhile = absl::Milliseconds(20);
// A ticket is late when it has taken this many times what its holder usually needs.
constexpr double kLate = 2;
// A void ticket that has not come back after this many times the usual time was dropped unserved.
constexpr double kDropped = 10;
// A passed-over actor is tried again after this many times what it needed last.
constexpr double kTryAgain = 20;

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
  added.credits = std::max(credits, 1u);
  added.runners = std::max(runners, 1u);
}

void TicketOffice::RemoveActor(const ActorKey& actor) {
  for (Block& block : blocks_) {
    const auto gone = std::remove(block.holders.begin(), block.holders.end(), actor);
    if (gone == block.holders.end()) continue;
    block.holders.erase(gone, block.holders.end());
    block.taken_back = true;
  }
  actors_.erase(actor);
}

void TicketOffice::ReleaseHolders(Block* block) {
  for (const ActorKey& holder : block->holders) {
    if (auto it = actors_.find(holder); it != actors_.end()) it->second.held.erase(block->ticket_id);
  }
  block->holders.clear();
}

void TicketOffice::Return(const ActorKey& actor, uint64_t ticket_id, std::optional<absl::Duration> now) {
  bool granted_once = true;
  if (auto open = block_of_ticket_.find(ticket_id); open != block_of_ticket_.end()) {
    Block& block = blocks_[open->second];
    block.holders.erase(std::remove(block.holders.begin(), block.holders.end(), actor), block.holders.end());
    granted_once = !block.taken_back;
  }
  auto it = actors_.find(actor);
  if (it == actors_.end()) return;
  Actor& a = it->second;
  auto held = a.held.find(ticket_id);
  if (held == a.held.end()) return;
  if (now && granted_once) {
    // Of what it holds beyond its runners, a ticket waits for its turn.
    const double waiting = std::max(1.0, static_cast<double>(a.held.size()) / a.runners);
    const absl::Duration took = (*now - held->second) / waiting;
    a.service = a.service == absl::ZeroDuration() ? took : a.service + kNewest * (took - a.service);
    a.measured = *now;
  }
  a.held.erase(held);
}

absl::Duration TicketOffice::BestService() const {
  absl::Duration best = absl::ZeroDuration();
  for (const auto& [key, actor] : actors_) {
    if (actor.service == absl::ZeroDuration()) continue;
    if (best == absl::ZeroDuration() || actor.service < best) best = actor.service;
  }
  return best;
}

// Whether the others would be done with all that is open before `actor` with this ticket and what follows from it.
bool TicketOffice::TooSlow(const Actor& actor, const Block& block) const {
  const absl::Duration best = BestService();
  if (versions_.empty() || actor.service <= std::max(kSlow * best, best + kWorthwhile)) return false;
  double others_per_second = 0;
  for (const auto& [key, other] : actors_) {
    if (&other == &actor) continue;
    const absl::Duration service = other.service == absl::ZeroDuration() ? best : other.service;
    others_per_second += other.runners / absl::ToDoubleSeconds(service);
  }
  if (others_per_second == 0) return false;
  uint32_t fragments = 0;
  for (const Block& open : blocks_) fragments += open.to_come;
  const absl::Duration without = absl::Seconds(fragments / others_per_second) + best;
  return actor.service + (block.to_come - 1) * best > without;
}

void TicketOffice::ForgetDropped(absl::Duration now) {
  const absl::Duration best = BestService();
  for (auto& [key, actor] : actors_) {
    const absl::Duration usual = std::max(actor.service, best);
    if (usual == absl::ZeroDuration()) continue;
    for (auto it = actor.held.begin(); it != actor.held.end();) {
      const bool dropped = block_of_ticket_.count(it->first) == 0 && now - it->second > kDropped * usual;
      it = dropped ? actor.held.erase(it) : std::next(it);
    }
  }
}

v1::Ticket TicketOffice::Give(uint32_t b, ActorEntry* actor, absl::Duration now) {
  Block& block = blocks_[b];
  block.holders.push_back(actor->first);
  actor->second.held[block.ticket_id] = now;
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
  ForgetDropped(now);
  GrantOpen(now, &grants);
  if (!versions_.empty()) GrantLate(now, &grants);
  return grants;
}

void TicketOffice::GrantOpen(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  uint32_t runners = 0;
  for (const auto& [key, actor] : actors_) runners += actor.runners;
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
      const bool may = actor.idle() || (actor.held.size() < actor.credits && left > runners);
      // held / runners, compared without division.
      if (!may ||
          (best != nullptr && actor.held.size() * best->second.runners >= best->second.held.size() * actor.runners)) {
        continue;
      }
      if (!TooSlow(actor, blocks_[b])) best = &entry;
    }
    if (best == nullptr) continue;
    grants->emplace_back(best->first, Give(b, best, now));
    --left;
  }
}

// How long until the block's only holder answers, by what is known of it.
absl::Duration TicketOffice::ExpectedRemaining(const Block& block, absl::Duration now) const {
  auto it = actors_.find(block.holders[0]);
  if (it == actors_.end()) return absl::InfiniteDuration();
  const Actor& holder = it->second;
  const absl::Duration usual = holder.service == absl::ZeroDuration() ? BestService() : holder.service;
  auto held = holder.held.find(block.ticket_id);
  if (held == holder.held.end()) return absl::ZeroDuration();
  const absl::Duration elapsed = now - held->second;
  const double waiting = std::max(1.0, static_cast<double>(holder.held.size()) / holder.runners);
  if (elapsed < usual * waiting) return usual * waiting - elapsed;
  return elapsed > kLate * waiting * usual ? elapsed : absl::ZeroDuration();
}

void TicketOffice::GrantLate(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  const absl::Duration best = BestService();
  if (best == absl::ZeroDuration()) return;
  for (auto& entry : actors_) {
    Actor& actor = entry.second;
    const absl::Duration service = actor.service == absl::ZeroDuration() ? best : actor.service;
    // Now and then a slow actor is given a ticket to see whether it still is.
    const bool trial = actor.service > kSlow * best && now - actor.measured > kTryAgain * actor.service;
    while (actor.idle()) {
      const Block* latest = nullptr;
      absl::Duration longest = trial ? absl::ZeroDuration() : std::max(service, kWorthwhile);
      for (const Block& block : blocks_) {
        if (block.ticket_id == 0 || block.holders.size() != 1 || block.holders[0] == entry.first) continue;
        const absl::Duration remaining = ExpectedRemaining(block, now);
        if (remaining <= longest) continue;
        longest = remaining;
        latest = &block;
      }
      if (latest == nullptr) break;
      grants->emplace_back(entry.first, Give(static_cast<uint32_t>(latest - blocks_.data()), &entry, now));
      if (trial) break;
    }
  }
}

std::optional<TicketOffice::Piece> TicketOffice::PieceOf(uint64_t ticket_id) const {
  auto it = block_of_ticket_.find(ticket_id);
  return it == block_of_ticket_.end() ? std::nullopt : std::optional<Piece>(Next(it->second));
}

std::optional<TicketOffice::Piece> TicketOffice::Redeem(const ActorKey& actor, uint64_t ticket_id, absl::Duration now) {
  Return(actor, ticket_id, now);
  auto it = block_of_ticket_.find(ticket_id);
  if (it == block_of_ticket_.end()) return std::nullopt;
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
  return holders;
}

}  // namespace skein
