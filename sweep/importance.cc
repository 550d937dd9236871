// SPDX-License-Identifier: Apache-2.0
#include "sweep/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace skein {
namespace {

constexpr size_t kQuarters = 4;

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

}  // namespace

std::vector<double> Importance(const Space& space, const std::vector<Trial>& trials) {
  std::vector<double> importance(space.parameters.size(), 0);
  size_t highest = 0;
  for (const Trial& one : trials) {
    if (!one.results.empty()) highest = std::max<size_t>(highest, one.results.rbegin()->first);
  }
  std::vector<const Trial*> judged;
  for (const Trial& one : trials) {
    const auto found = one.results.find(static_cast<uint32_t>(highest));
    if (found != one.results.end() && std::isfinite(found->second)) judged.push_back(&one);
  }
  if (judged.size() < 3) return importance;
  for (size_t i = 0; i < importance.size(); ++i) {
    const bool choice = space.parameters[i].kind == Parameter::Kind::kChoice;
    std::vector<std::pair<double, double>> pairs;  // Value, result.
    for (const Trial* one : judged) {
      if (one->point[i]) pairs.emplace_back(*one->point[i], one->results.at(static_cast<uint32_t>(highest)));
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
    importance[i] = EpsilonSquared(groups);
  }
  return importance;
}

}  // namespace skein
