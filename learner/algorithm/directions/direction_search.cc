// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/directions/direction_search.h"

#include <torch/types.h>
#include <torch/utils.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/number/exact_moments.h"
#include "learner/network/policy_snapshot.h"
#include "learner/optimize/state_layout.h"

namespace skein {
namespace {

constexpr int64_t kMostBarren = 2;

// The steps of directions of which both returns are finite.
int64_t FiniteSteps(const Batch& batch) {
  const torch::Tensor finite = batch["return_plus"].isfinite().logical_and(batch["return_minus"].isfinite());
  return (batch["steps_plus"] + batch["steps_minus"]).masked_select(finite).sum().item<int64_t>();
}

absl::Span<const int64_t> Words(const torch::Tensor& rows, int64_t row) {
  const auto width = static_cast<size_t>(rows.size(1));
  return {rows.data_ptr<int64_t>() + row * rows.size(1), width};
}

}  // namespace

DirectionSearch::DirectionSearch(const v1::RunConfig& config, const ActorCriticOptions& network)
    : config_(config), network_(std::make_shared<ActorCritic>(network, config.seed())), moments_(network.obs_size) {
  const auto parameters = network_->PolicyParameters();
  for (const size_t i : SearchedParameters(network)) searched_.push_back(parameters[i].second);
  if (network.hidden.empty()) SetParameters(std::vector<double>(size(), 0));
}

size_t DirectionSearch::size() const {
  size_t size = 0;
  for (const torch::Tensor& tensor : searched_) size += static_cast<size_t>(tensor.numel());
  return size;
}

std::vector<double> DirectionSearch::Parameters() const {
  std::vector<double> values;
  for (const torch::Tensor& tensor : searched_) {
    const float* const from = tensor.data_ptr<float>();
    values.insert(values.end(), from, from + tensor.numel());
  }
  return values;
}

void DirectionSearch::SetParameters(absl::Span<const double> parameters) {
  const torch::NoGradGuard no_grad;
  const double* from = parameters.data();
  for (torch::Tensor& tensor : searched_) {
    float* const to = tensor.data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) to[i] = static_cast<float>(*from++);
  }
}

void DirectionSearch::AddDirection(uint64_t iteration, uint64_t index, double weight, absl::Span<double> sum) const {
  RandomStream noise = Direction{config_.seed(), iteration, index}.Noise();
  for (double& element : sum) element += weight * noise.Normal();
}

absl::StatusOr<UpdateStats> DirectionSearch::Update(const Batch& batch, double progress, uint64_t iteration) {
  const v1::DirectionsConfig& directions = config_.directions();
  const torch::Tensor plus = batch["return_plus"], minus = batch["return_minus"];
  const torch::Tensor steps_plus = batch["steps_plus"], steps_minus = batch["steps_minus"];
  std::vector<DirectionReturn> returns;
  double sum = 0, best = -INFINITY;
  for (int64_t i = 0; i < plus.numel(); ++i) {
    const auto mean = [&](const torch::Tensor& total, const torch::Tensor& steps) {
      const auto taken_off = directions.reward_shift() * static_cast<double>(steps.data_ptr<int64_t>()[i]);
      return (total.data_ptr<double>()[i] - taken_off) / directions.num_envs();
    };
    const DirectionReturn direction{static_cast<uint64_t>(i), mean(plus, steps_plus), mean(minus, steps_minus)};
    if (!std::isfinite(direction.plus) || !std::isfinite(direction.minus)) continue;
    returns.push_back(direction);
    sum += direction.plus + direction.minus;
    best = std::max(best, std::max(direction.plus, direction.minus));
  }
  UpdateStats stats;
  const int64_t dropped = plus.numel() - static_cast<int64_t>(returns.size());
  stats.Add("dropped_directions", static_cast<double>(dropped));
  if (dropped > 0) {
    drops_.Warn(absl::StrCat("iteration ", iteration, ": ", dropped, " of ", plus.numel(),
                             " directions have returns that are not finite",
                             returns.empty() ? "; it changes no parameter" : ", and are dropped"));
  }
  if (returns.empty()) {
    if (++barren_ >= kMostBarren) {
      return absl::FailedPreconditionError(
          absl::StrCat(AlgorithmName(config_), ": all ", plus.numel(), " directions of ", barren_,
                       " iterations in a row have returns that are not finite; lower directions.noise_std or ",
                       AlgorithmName(config_), ".step_size"));
    }
    return stats;
  }
  barren_ = 0;
  const double count = 2 * static_cast<double>(returns.size());
  stats.Add("direction_return_mean", sum / count);
  stats.Add("direction_return_max", best);
  std::vector<double> parameters = Parameters();
  Step(returns, progress, iteration, absl::MakeSpan(parameters), &stats);
  SetParameters(parameters);
  CountObservations(batch);
  return stats;
}

void DirectionSearch::CountObservations(const Batch& batch) {
  const torch::Tensor &sums = batch["obs_sum"], &square_sums = batch["obs_square_sum"];
  if (!sums.defined()) return;
  const auto size = static_cast<size_t>(moments_.mean().numel());
  ExactMoments all(size);
  for (int64_t row = 0; row < sums.size(0); ++row) all.AddWords(Words(sums, row), Words(square_sums, row));
  const torch::Tensor& count = batch["obs_count"];
  const auto rows = static_cast<double>(count.defined() ? count.item<int64_t>() : FiniteSteps(batch));
  if (rows == 0) return;
  torch::Tensor mean = torch::empty(moments_.mean().sizes(), torch::kFloat64), variance = torch::empty_like(mean);
  for (size_t i = 0; i < size; ++i) {
    mean.data_ptr<double>()[i] = all.Mean(i, rows);
    variance.data_ptr<double>()[i] = all.Variance(i, rows);
  }
  RunningMoments of_iteration(static_cast<int64_t>(size));
  of_iteration.Restore(rows, mean, variance);
  moments_.Merge(of_iteration);
}

Algorithm::Acting DirectionSearch::acting() const {
  const auto size = moments_.mean().numel();
  const bool normalizes = config_.model().normalize_observations();
  return {network_.get(), normalizes ? ObsScale::From(moments_) : ObsScale::Identity(size), ObsScale::Identity(0)};
}

v1::PolicySnapshot DirectionSearch::Snapshot(uint64_t version) const {
  return MakeSnapshot(version, *network_, acting().obs_scale, config_.transport());
}

StateTensors DirectionSearch::ModelState() const {
  StateTensors state;
  for (const auto& [name, parameter] : network_->PolicyParameters()) {
    state.emplace_back(name, parameter.detach().clone());
  }
  state.emplace_back("obs_normalizer.count", torch::full({1}, moments_.count(), torch::kFloat64));
  state.emplace_back("obs_normalizer.mean", moments_.mean().clone());
  state.emplace_back("obs_normalizer.variance", moments_.variance().clone());
  return state;
}

StateTensors DirectionSearch::OptimizerState() const {
  StateTensors state = StepState();
  state.emplace_back("barren_iterations", torch::full({1}, barren_, torch::kInt64));
  return state;
}

absl::Status DirectionSearch::Restore(const StateTensors& model, const StateTensors& optimizer) {
  absl::Status status = CheckSameLayout(model, ModelState(), "model");
  if (status.ok()) status = CheckSameLayout(optimizer, OptimizerState(), "optimizer");
  if (!status.ok()) return status;
  const torch::NoGradGuard no_grad;
  const auto parameters = network_->PolicyParameters();
  for (size_t i = 0; i < parameters.size(); ++i) torch::Tensor(parameters[i].second).copy_(model[i].second);
  const size_t first = parameters.size();
  moments_.Restore(model[first].second.item<double>(), model[first + 1].second, model[first + 2].second);
  RestoreStep({optimizer.begin(), optimizer.end() - 1});
  barren_ = optimizer.back().second.item<int64_t>();
  return absl::OkStatus();
}

uint64_t DirectionSearch::ParametersDigest() const {
  std::vector<float> values;
  for (const double value : Parameters()) values.push_back(static_cast<float>(value));
  return XXH3_64bits(values.data(), values.size() * sizeof(float));
}

}  // namespace skein
