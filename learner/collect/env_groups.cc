// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/env_groups.h"

#include <algorithm>
#include <utility>

namespace skein {
namespace {

// The most episodes of one environment between two restarts. Episodes after a restart have their own indices, and so
// their own random numbers.
constexpr uint32_t kEpisodesOfOneStart = 1 << 20;
constexpr uint32_t kMostStarts = (1 << 12) - 1;  // Then they share indices: an index has 32 bits.

}  // namespace

EnvGroups::EnvGroups(const Options& options)
    : first_env_(options.first_env),
      envs_per_group_(options.envs_per_group),
      steps_(options.steps),
      ranks_(options.ranks),
      fragments_(options.fragments),
      relocatable_(options.relocatable),
      next_ticket_id_(std::max<uint64_t>(options.first_ticket_id, 1)),
      groups_(options.share_envs / options.envs_per_group) {
  next_ticket_id_ += (options.rank + ranks_ - next_ticket_id_ % ranks_) % ranks_;
}

void EnvGroups::TakeShare(uint32_t first_env, uint32_t share_envs) {
  CloseIteration();
  EnvGroup fresh;
  fresh.abandoned = std::any_of(groups_.begin(), groups_.end(),
                                [](const EnvGroup& group) { return group.episodes_since != 0 || group.abandoned; });
  for (const EnvGroup& group : groups_) fresh.restarts = std::max(fresh.restarts, group.restarts);
  first_env_ = first_env;
  groups_.assign(share_envs / envs_per_group_, fresh);
}

void EnvGroups::Restore(const TicketState& state) {
  for (uint32_t g = 0; g < groups_.size(); ++g) groups_[g].state = Rows(state, g * envs_per_group_, envs_per_group_);
}

std::optional<TicketState> EnvGroups::State() const {
  std::vector<const TicketState*> states;
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    states.push_back(HasBegun(g) ? &groups_[g].begun_from[0] : &groups_[g].state);
    if (!states.back()->env_state) return std::nullopt;
  }
  return Join(states);
}

Piece EnvGroups::Next(uint32_t g) const {
  if (open_.empty()) return {g, 0, 0};
  const uint32_t committed = fragments_ * static_cast<uint32_t>(open_.size()) - groups_[g].to_come;
  return {g, committed / fragments_, committed % fragments_};
}

bool EnvGroups::HasBegun(uint32_t g) const {
  const Piece next = Next(g);
  return next.iteration > 0 || next.fragment > 0;
}

void EnvGroups::Open(uint32_t g) {
  groups_[g].ticket_id = next_ticket_id_;
  next_ticket_id_ += ranks_;
  groups_[g].holders = TicketHolders();
  group_of_ticket_[groups_[g].ticket_id] = g;
}

void EnvGroups::CloseTicket(uint32_t g) {
  group_of_ticket_.erase(groups_[g].ticket_id);
  groups_[g].ticket_id = 0;
  groups_[g].holders = TicketHolders();
}

void EnvGroups::OpenIteration(uint64_t policy_version, uint32_t env_phase) {
  open_.push_back({policy_version, env_phase});
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].to_come == 0) Open(g);
    groups_[g].to_come += fragments_;
  }
}

uint32_t EnvGroups::OpenTickets(uint32_t count) {
  std::vector<uint32_t> free;
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].to_come == 0) free.push_back(g);
  }
  std::stable_sort(free.begin(), free.end(),
                   [this](uint32_t a, uint32_t b) { return groups_[a].served < groups_[b].served; });
  if (free.size() > count) free.resize(count);
  for (const uint32_t g : free) {
    groups_[g].to_come = 1;
    Open(g);
  }
  return static_cast<uint32_t>(free.size());
}

bool EnvGroups::complete() const {
  return std::all_of(groups_.begin(), groups_.end(), [](const EnvGroup& group) { return group.to_come == 0; });
}

bool EnvGroups::front_complete() const {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (Next(g).iteration == 0) return false;
  }
  return true;
}

uint32_t EnvGroups::fragments_to_come() const {
  uint32_t fragments = 0;
  for (const EnvGroup& group : groups_) fragments += group.to_come;
  return fragments;
}

uint32_t EnvGroups::fragments_behind() const {
  const auto at_front = [this](const EnvGroup& group) { return group.to_come > fragments_; };
  return fragments_ * static_cast<uint32_t>(std::count_if(groups_.begin(), groups_.end(), at_front));
}

void EnvGroups::CloseIteration() {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].holders.now().empty()) Restart(g);
    CloseTicket(g);
    groups_[g].accepted = false;
    groups_[g].to_come = 0;
  }
  open_.clear();
}

std::vector<uint32_t> EnvGroups::EndIteration() {
  std::vector<uint32_t> done, short_of_it;
  for (uint32_t g = 0; g < groups_.size(); ++g) (Next(g).iteration > 0 ? done : short_of_it).push_back(g);
  for (const uint32_t g : short_of_it) {
    EnvGroup& group = groups_[g];
    if (relocatable_ && HasBegun(g)) group.state = std::move(group.begun_from[0]);
    if (!group.holders.now().empty()) Restart(g);
    CloseTicket(g);
  }
  open_.erase(open_.begin());
  for (const uint32_t g : done) groups_[g].begun_from[0] = std::move(groups_[g].begun_from[1]);
  for (const uint32_t g : short_of_it) {
    groups_[g].to_come = fragments_ * static_cast<uint32_t>(open_.size());
    if (groups_[g].to_come > 0) Open(g);
  }
  return done;
}

std::optional<uint32_t> EnvGroups::Find(uint64_t ticket_id) const {
  const auto it = group_of_ticket_.find(ticket_id);
  return it == group_of_ticket_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<uint32_t> EnvGroups::Waiting() const {
  std::vector<uint32_t> waiting;
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].ticket_id != 0 && groups_[g].holders.now().empty()) waiting.push_back(g);
  }
  // Groups with the most fragments to come are first, so groups at the front come first; ties go to the oldest ticket.
  std::sort(waiting.begin(), waiting.end(), [this](uint32_t a, uint32_t b) {
    if (groups_[a].to_come != groups_[b].to_come) return groups_[a].to_come > groups_[b].to_come;
    return groups_[a].ticket_id < groups_[b].ticket_id;
  });
  return waiting;
}

std::map<ConnectionId, uint32_t> EnvGroups::Owned() const {
  std::map<ConnectionId, uint32_t> owned;
  for (const EnvGroup& group : groups_) {
    if (group.owner) ++owned[*group.owner];
  }
  return owned;
}

bool EnvGroups::MayGo(uint32_t g, const ConnectionId& actor) const {
  return !groups_[g].owner || *groups_[g].owner == actor;
}

v1::Ticket EnvGroups::Give(uint32_t g, const ConnectionId& actor) {
  EnvGroup& group = groups_[g];
  group.holders.Add(actor);
  if (!relocatable_) {
    group.owner = actor;
    if (group.episodes_since == 0) group.episodes_since = group.ticket_id;
    if (std::exchange(group.abandoned, false)) {
      ++group.restarts;
      restarted_episodes_ += envs_per_group_;
    }
  }
  const OpenOrder order = open_.empty() ? OpenOrder{0, env_phase_} : open_[Next(g).iteration];
  v1::Ticket ticket;
  ticket.set_id(group.ticket_id);
  ticket.set_policy_version(order.policy_version);
  ticket.set_phase(order.env_phase);
  ticket.set_first_env(FirstEnv(g));
  ticket.set_group_envs(envs_per_group_);
  ticket.set_steps(steps_);
  ticket.set_episodes_since(group.episodes_since);
  ticket.set_first_episode(std::min(group.restarts, kMostStarts) * kEpisodesOfOneStart);
  if (group.state.env_state) *ticket.mutable_env_state() = *group.state.env_state;
  if (group.state.policy_state) *ticket.mutable_policy_state() = *group.state.policy_state;
  return ticket;
}

void EnvGroups::Forget(const ConnectionId& actor) {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    groups_[g].holders.TakeBack(actor);
    if (groups_[g].owner != actor) continue;
    groups_[g].owner.reset();
    Restart(g);
  }
}

void EnvGroups::Restart(uint32_t g) {
  EnvGroup& group = groups_[g];
  if (group.episodes_since == 0) return;
  group.abandoned = true;
  group.episodes_since = 0;
  group.state = {};
  if (group.ticket_id == 0) return;
  CloseTicket(g);
  Open(g);
}

void EnvGroups::Accept(uint32_t g) {
  CloseTicket(g);
  groups_[g].accepted = true;
}

void EnvGroups::Commit(uint32_t g, TicketState state) {
  EnvGroup& group = groups_[g];
  if (!group.accepted) return;
  group.accepted = false;
  const Piece piece = Next(g);
  if (piece.fragment == 0) group.begun_from[piece.iteration] = std::move(group.state);
  // Environments that were lost meanwhile begin new episodes.
  const bool continues = relocatable_ || group.episodes_since != 0;
  group.state = continues ? std::move(state) : TicketState();
  ++group.served;
  if (--group.to_come > 0) Open(g);
}

void EnvGroups::Reopen(uint32_t g) {
  if (!groups_[g].accepted) return;
  groups_[g].accepted = false;
  Restart(g);
  Open(g);
}

}  // namespace skein
