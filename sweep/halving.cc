// SPDX-License-Identifier: Apache-2.0
#include "sweep/halving.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace skein {
namespace {

// The best first.
void SortAt(uint32_t rung, std::vector<const Trial*>* trials) {
  std::sort(trials->begin(), trials->end(), [rung](const Trial* a, const Trial* b) {
    return std::tuple(-a->results.at(rung), a->number) < std::tuple(-b->results.at(rung), b->number);
  });
}

// Whether it is still on its way to the rung that it may train up to.
bool IsOnItsWay(const Trial& trial) { return trial.state == TrialState::kRunning && !trial.has_result(trial.rung); }

}  // namespace

Scheduler::Verdict AsyncHalving::Judge(const std::vector<Trial>& trials, bool more) const {
  Verdict verdict;
  std::vector<std::vector<const Trial*>> at(rungs_.size());
  bool on_the_way = false;
  for (const Trial& one : trials) {
    on_the_way = on_the_way || IsOnItsWay(one);
    for (const auto& result : one.results) at[result.first].push_back(&one);
  }
  for (size_t rung = rungs_.size() - 1; rung-- > 0;) {
    SortAt(static_cast<uint32_t>(rung), &at[rung]);
    const size_t best = at[rung].size() / reduction_;
    for (size_t i = 0; i < best; ++i) {
      const Trial& one = *at[rung][i];
      if (one.rung == rung && one.waits()) verdict.promote.push_back(one.number);
    }
  }
  if (more || on_the_way || !verdict.promote.empty()) return verdict;
  for (const Trial& one : trials) {
    if (one.waits() && one.rung + 1 < rungs_.size()) verdict.stop.push_back(one.number);
  }
  return verdict;
}

double AsyncHalving::ExpectedSteps(uint32_t trials) const {
  double steps = 0, left = trials;
  uint64_t before = 0;
  for (uint64_t rung : rungs_) {
    steps += left * static_cast<double>(rung - before);
    before = rung;
    left /= reduction_;
  }
  return steps;
}

Hyperband::Hyperband(uint64_t least, uint32_t reduction, uint64_t total) : reduction_(reduction) {
  const std::vector<uint64_t> rungs = HalvingRungs(least, reduction, total);
  const size_t most = rungs.size() - 1;  // s_max of the paper.
  for (size_t s = most + 1; s-- > 0;) {
    double begin = static_cast<double>(most + 1) / static_cast<double>(s + 1);
    for (size_t i = 0; i < s; ++i) begin *= reduction;
    Bracket bracket;
    bracket.trials = static_cast<uint32_t>(begin) + (begin > static_cast<double>(static_cast<uint32_t>(begin)) ? 1 : 0);
    bracket.rungs.assign(rungs.begin() + static_cast<ptrdiff_t>(most - s), rungs.end());
    all_ += bracket.trials;
    brackets_.push_back(std::move(bracket));
  }
}

uint32_t Hyperband::GroupOf(uint32_t number) const {
  const uint32_t round = number / all_;
  uint32_t left = number % all_, bracket = 0;
  while (left >= brackets_[bracket].trials) left -= brackets_[bracket++].trials;
  return round * static_cast<uint32_t>(brackets_.size()) + bracket;
}

Scheduler::Verdict Hyperband::Judge(const std::vector<Trial>& trials, bool more) const {
  Verdict verdict;
  verdict.group = GroupOf(static_cast<uint32_t>(trials.size()));
  std::map<uint32_t, std::vector<const Trial*>> groups;
  for (const Trial& one : trials) groups[one.group].push_back(&one);
  for (const auto& [group, members] : groups) {
    const Bracket& bracket = brackets_[group % brackets_.size()];
    JudgeGroup(members, bracket, !more || members.size() >= bracket.trials, &verdict);
  }
  return verdict;
}

void Hyperband::JudgeGroup(const std::vector<const Trial*>& members, const Bracket& bracket, bool full,
                           Verdict* verdict) const {
  if (!full) return;
  size_t size = members.size();
  for (uint32_t rung = 0; rung + 1 < bracket.rungs.size(); ++rung, size /= reduction_) {
    std::vector<const Trial*> done;
    for (const Trial* one : members) {
      if (one->state == TrialState::kRunning && one->rung <= rung && !one->has_result(rung)) return;  // Not finished.
      if (one->has_result(rung)) done.push_back(one);
    }
    SortAt(rung, &done);
    const size_t best = std::min(done.size(), size / reduction_);
    for (size_t i = 0; i < done.size(); ++i) {
      const bool here = done[i]->waits() && done[i]->rung == rung;
      if (here) (i < best ? verdict->promote : verdict->stop).push_back(done[i]->number);
    }
  }
}

double Hyperband::ExpectedSteps(uint32_t trials) const {
  double once = 0;
  for (const Bracket& bracket : brackets_) {
    double left = bracket.trials;
    uint64_t before = 0;
    for (uint64_t rung : bracket.rungs) {
      once += left * static_cast<double>(rung - before);
      before = rung;
      left = static_cast<double>(static_cast<uint64_t>(left / reduction_));
    }
  }
  return once * static_cast<double>(trials) / static_cast<double>(all_);
}

}  // namespace skein
