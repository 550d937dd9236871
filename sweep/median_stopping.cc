// SPDX-License-Identifier: Apache-2.0
#include "sweep/median_stopping.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace skein {
namespace {

// Of the results up to `rung`.
double Mean(const Trial& trial, uint32_t rung) {
  double sum = 0;
  size_t count = 0;
  for (auto it = trial.results.begin(); it != trial.results.end() && it->first <= rung; ++it, ++count)
    sum += it->second;
  return count == 0 ? -std::numeric_limits<double>::infinity() : sum / static_cast<double>(count);
}

// The middle one; of an even number the mean of the two.
double Median(std::vector<double> values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half))) / 2;
}

}  // namespace

Scheduler::Verdict MedianStopping::Judge(const std::vector<Trial>& trials, bool) const {
  Verdict verdict;
  std::vector<const Trial*> complete;
  for (const Trial& one : trials) {
    if (one.state == TrialState::kComplete) complete.push_back(&one);
  }
  if (complete.size() < min_trials_) return verdict;
  std::vector<std::optional<double>> medians(rungs_.size());
  for (const Trial& one : trials) {
    if (one.state != TrialState::kRunning || one.results.empty()) continue;
    const uint32_t rung = one.results.rbegin()->first;
    if (!medians[rung]) {
      std::vector<double> means;
      for (const Trial* other : complete) means.push_back(Mean(*other, rung));
      medians[rung] = Median(std::move(means));
    }
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& result : one.results) best = std::max(best, result.second);
    if (best < *medians[rung]) verdict.stop.push_back(one.number);
  }
  return verdict;
}

double MedianStopping::ExpectedSteps(uint32_t trials) const {
  return static_cast<double>(trials) * static_cast<double>(rungs_.back());  // At most.
}

}  // namespace skein
