// SPDX-License-Identifier: Apache-2.0
#include "coordinator/assignment.h"

#include <algorithm>
#include <utility>

namespace skein {
namespace {

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

// Ranks by share, the smallest first, the lowest rank first among equals.
std::vector<std::pair<uint64_t, uint32_t>> Ascending(const std::map<uint32_t, uint64_t>& shares) {
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (const auto& [rank, share] : shares) order.emplace_back(share, rank);
  std::sort(order.begin(), order.end());
  return order;
}

// The same with the largest first.
std::vector<std::pair<uint64_t, uint32_t>> Descending(const std::map<uint32_t, uint64_t>& shares) {
  std::vector<std::pair<uint64_t, uint32_t>> order = Ascending(shares);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return order;
}

}  // namespace

void Assignment::Restore(const std::string& actor, uint32_t runners, uint32_t rank) {
  actors_[actor] = {std::max(runners, 1u), rank, rank};
}

std::vector<Assignment::Move> Assignment::Update(const std::set<uint32_t>& ranks,
                                                 const std::map<std::string, uint32_t>& actors) {
  ranks_ = ranks;
  for (auto it = actors_.begin(); it != actors_.end();) {
    it = actors.count(it->first) > 0 ? std::next(it) : actors_.erase(it);
  }
  for (const auto& [id, runners] : actors) actors_[id].runners = std::max(runners, 1u);
  for (auto& [id, actor] : actors_) {
    if (actor.rank && ranks_.count(*actor.rank) == 0) actor.rank.reset();
  }
  if (ranks_.empty()) return {};
  Place();
  while (BalanceOnce()) {
  }
  return TakeMoves();
}

std::vector<Assignment::Move> Assignment::TakeMoves() {
  std::vector<Move> moves;
  for (auto& [id, actor] : actors_) {
    if (actor.told && actor.rank != actor.told) moves.push_back({id, *actor.told, *actor.rank});
    actor.told = actor.rank;
  }
  return moves;
}

void Assignment::Place() {
  std::vector<std::pair<uint64_t, std::string>> waiting;
  for (const auto& [id, actor] : actors_) {
    if (!actor.rank) waiting.emplace_back(actor.runners, id);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [runners, id] : waiting) actors_.at(id).rank = Ascending(Shares()).front().second;
}

bool Assignment::BalanceOnce() {
  const std::map<uint32_t, uint64_t> shares = Shares();
  const auto [least, to] = Ascending(shares).front();
  for (const auto& [share, from] : Descending(shares)) {
    const std::string* actor = BestActor(from, share - least, share - least);
    if (actor == nullptr) continue;
    actors_.at(*actor).rank = to;
    return true;
  }
  return false;
}

const std::string* Assignment::BestActor(uint32_t from, uint64_t gap, uint64_t below) const {
  const std::string* best = nullptr;
  uint64_t best_gap = 0;
  for (const auto& [id, actor] : actors_) {
    if (actor.rank != from || actor.runners >= below) continue;
    const uint64_t gap_after = Distance(gap, 2 * actor.runners);
    if (best != nullptr && gap_after >= best_gap) continue;
    best = &id;
    best_gap = gap_after;
  }
  return best;
}

std::optional<Assignment::Move> Assignment::ServeStarving(const std::map<uint32_t, double>& waiting,
                                                          MonotonicTime now) {
  if (served_at_ && now - *served_at_ < kMovePause) return std::nullopt;
  std::map<uint32_t, uint64_t> shares = Shares();
  std::optional<uint32_t> starving;
  for (const auto& [share, rank] : Ascending(shares)) {
    auto reported = waiting.find(rank);
    if (reported == waiting.end() || !(reported->second >= kStarvingSeconds)) continue;
    if (starving && (share > shares[*starving] || reported->second <= waiting.at(*starving))) continue;
    starving = rank;
  }
  if (!starving) return std::nullopt;
  uint64_t largest = 0;
  for (const auto& [id, actor] : actors_) largest = std::max(largest, actor.runners);
  for (const auto& [share, rank] : Descending(shares)) {
    auto reported = waiting.find(rank);
    if (reported == waiting.end() || !(reported->second < kHasDataSeconds) || share <= shares[*starving]) continue;
    const std::string* actor = BestActor(rank, share - shares[*starving], share + 1);
    const uint64_t runners = actors_.at(*actor).runners;
    std::map<uint32_t, uint64_t> after = shares;
    after[rank] -= runners;
    after[*starving] += runners;
    const auto order = Ascending(after);
    if (order.back().first - order.front().first > largest) continue;
    actors_.at(*actor).rank = *starving;
    served_at_ = now;
    std::optional<Move> move = TakeMoves().front();
    move->starvation = true;
    return move;
  }
  return std::nullopt;
}

std::optional<uint32_t> Assignment::RankOf(const std::string& actor) const {
  auto found = actors_.find(actor);
  return found == actors_.end() ? std::nullopt : found->second.rank;
}

std::map<uint32_t, uint64_t> Assignment::Shares() const {
  std::map<uint32_t, uint64_t> shares;
  for (uint32_t rank : ranks_) shares[rank] = 0;
  for (const auto& [id, actor] : actors_) {
    if (actor.rank) shares[*actor.rank] += actor.runners;
  }
  return shares;
}

}  // namespace skein
