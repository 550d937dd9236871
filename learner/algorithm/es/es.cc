// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/es/es.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/config/direction_rules.h"

namespace skein {
namespace {

torch::Tensor ToTensor(const std::vector<double>& values) {
  torch::Tensor tensor = torch::empty({static_cast<int64_t>(values.size())}, torch::kFloat64);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

}  // namespace

std::vector<double> CenteredRanks(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  if (values.size() < 2) return ranks;
  for (size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double rank = static_cast<double>(first + last - 1) / 2;
    for (size_t i = first; i < last; ++i) ranks[order[i]] = rank / static_cast<double>(values.size() - 1) - 0.5;
  }
  return ranks;
}

Es::Es(const v1::RunConfig& config, const ActorCriticOptions& network)
    : DirectionSearch(config, network), first_moment_(size()), second_moment_(size()) {}

void Es::Step(absl::Span<const DirectionReturn> returns, double progress, uint64_t iteration,
              absl::Span<double> parameters, UpdateStats* stats) {
  const v1::EsConfig& es = config().es();
  std::vector<double> all;
  for (const DirectionReturn& direction : returns) all.insert(all.end(), {direction.plus, direction.minus});
  const std::vector<double> ranks = CenteredRanks(all);
  const double scale = 1 / (static_cast<double>(all.size()) * NoiseStd(config().directions(), progress));
  std::vector<double> gradient(parameters.size());
  for (size_t i = 0; i < returns.size(); ++i) {
    AddDirection(iteration, returns[i].index, scale * (ranks[2 * i] - ranks[2 * i + 1]), absl::MakeSpan(gradient));
  }
  const double step_size = Scheduled(es.step_size(), es.step_schedule(), progress);
  const double beta1 = es.adam_beta1(), beta2 = es.adam_beta2();
  ++steps_;
  const double unbias1 = 1 - std::pow(beta1, steps_), unbias2 = 1 - std::pow(beta2, steps_);
  double norm = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i] - es.weight_decay() * parameters[i];
    norm += g * g;
    first_moment_[i] = beta1 * first_moment_[i] + (1 - beta1) * g;
    second_moment_[i] = beta2 * second_moment_[i] + (1 - beta2) * g * g;
    parameters[i] +=
        step_size * (first_moment_[i] / unbias1) / (std::sqrt(second_moment_[i] / unbias2) + es.adam_epsilon());
  }
  stats->Add("step_size", step_size);
  stats->Add("grad_norm", std::sqrt(norm));
}

StateTensors Es::StepState() const {
  return {{"adam.step", torch::full({1}, steps_, torch::kInt64)},
          {"adam.exp_avg", ToTensor(first_moment_)},
          {"adam.exp_avg_sq", ToTensor(second_moment_)}};
}

void Es::RestoreStep(const StateTensors& state) {
  steps_ = state[0].second.item<int64_t>();
  std::copy_n(state[1].second.data_ptr<double>(), first_moment_.size(), first_moment_.begin());
  std::copy_n(state[2].second.data_ptr<double>(), second_moment_.size(), second_moment_.begin());
}

}  // namespace skein
