// SPDX-License-Identifier: Apache-2.0
#include "sweep/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace skein {
namespace {

constexpr size_t kQuarters = 4;
constexpr size_t kEnough = 10, kLeast = 3;  // Trials.

// Of values in groups: 1 - (within / (n - k)) / (total / (n - 1)).
double EpsilonSquared(const std::map<size_t, std::vector<double>>& groups) {
  double count = 0, sum = 0, squares = 0, between = 0;
  for (const auto& group : groups) {
    double part = 0;
    for (double value : group.second) {
      part += value;
      squares += value * value;
    }
    count += static_cast<double>(group.second.size());
    sum += part;
    between += part * part / static_cast<double>(group.second.size());
  }
  const double freedom = count - static_cast<double>(groups.size()), total = squares - sum * sum / count;
  if (groups.size() < 2 || freedom < 1 || total <= 0) return 0;
  return std::clamp(1 - (squares - between) / freedom / (total / (count - 1)), 0.0, 1.0);
}

// The results that are compared, by trial.
using Results = std::map<const Trial*, double>;

// Groups of the results of those trials that have the parameter.
std::map<size_t, std::vector<double>> GroupBy(const Space& space, size_t parameter, const Results& results) {
  const bool choice = space.parameters[parameter].kind == Parameter::Kind::kChoice;
  std::vector<std::pair<double, double>> pairs;  // Value, result.
  for (const auto& [trial, result] : results) {
    if (trial->point[parameter]) pairs.emplace_back(*trial->point[parameter], result);
  }
  std::sort(pairs.begin(), pairs.end());
  std::map<size_t, std::vector<double>> groups;
  size_t group = 0;
  for (size_t at = 0; at < pairs.size(); ++at) {
    // Equal values are in one group.
    if (at == 0 || pairs[at].first != pairs[at - 1].first) {
      group = choice ? static_cast<size_t>(pairs[at].first) : at * kQuarters / pairs.size();
    }
    groups[group].push_back(pairs[at].second);
  }
  return groups;
}

}  // namespace

Importance ImportanceOf(const Space& space, const std::vector<Trial>& trials, const Scheduler& scheduler) {
  std::map<uint64_t, Results> at;  // By env steps.
  for (const Trial& one : trials) {
    for (const auto& [rung, value] : one.results) {
      if (std::isfinite(value)) at[scheduler.rungs(one.group)[rung]][&one] = value;
    }
  }
  Importance importance;
  importance.shares.resize(space.parameters.size(), 0);
  for (auto it = at.rbegin(); it != at.rend() && importance.trials < kEnough; ++it) {
    if (it->second.size() <= importance.trials) continue;
    importance.env_steps = it->first;
    importance.trials = it->second.size();
  }
  if (importance.trials < kLeast) return importance;
  for (size_t i = 0; i < importance.shares.size(); ++i) {
    importance.shares[i] = EpsilonSquared(GroupBy(space, i, at[importance.env_steps]));
  }
  return importance;
}

}  // namespace skein
