// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ars/ars.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/config/direction_rules.h"

namespace skein {

std::vector<size_t> BestDirections(absl::Span<const DirectionReturn> returns, size_t top) {
  std::vector<size_t> order(returns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (top == 0 || top >= order.size()) return order;
  const auto best = [&](size_t i) { return std::max(returns[i].plus, returns[i].minus); };
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return best(i) > best(j); });
  order.resize(top);
  std::sort(order.begin(), order.end());
  return order;
}

void Ars::Step(absl::Span<const DirectionReturn> returns, double progress, uint64_t iteration,
               absl::Span<double> parameters, UpdateStats* stats) {
  const std::vector<size_t> used = BestDirections(returns, config().ars().top_dirs());
  const auto count = static_cast<double>(used.size());
  double mean = 0, squares = 0;
  for (const size_t i : used) mean += (returns[i].plus + returns[i].minus) / (2 * count);
  for (const size_t i : used) {
    squares += std::pow(returns[i].plus - mean, 2) + std::pow(returns[i].minus - mean, 2);
  }
  const double deviation = std::sqrt(squares / (2 * count));
  const double step_size = Scheduled(config().ars().step_size(), config().ars().step_schedule(), progress);
  stats->Add("return_std", deviation);
  stats->Add("step_size", step_size);
  std::vector<double> step(parameters.size());
  if (deviation > 0) {
    for (const size_t i : used) {
      AddDirection(iteration, returns[i].index, (returns[i].plus - returns[i].minus) / (count * deviation),
                   absl::MakeSpan(step));
    }
  }
  double norm = 0;
  for (size_t i = 0; i < step.size(); ++i) {
    parameters[i] += step_size * step[i];
    norm += step[i] * step[i];
  }
  stats->Add("grad_norm", std::sqrt(norm));
}

}  // namespace skein
