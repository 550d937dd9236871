// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/normalizers.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>

#include "learner/network/winsorize.h"
#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

constexpr double kEpsilon = 1e-8;

bool AllFinite(const torch::Tensor& tensor) { return torch::isfinite(tensor.sum()).item<bool>(); }

void Append(const std::string& name, const RunningMoments& moments, StateTensors* state) {
  state->emplace_back(name + ".count", torch::full({1}, moments.count(), torch::kFloat64));
  state->emplace_back(name + ".mean", moments.mean().clone());
  state->emplace_back(name + ".variance", moments.variance().clone());
}

void RestoreMoments(const StateTensors& state, size_t first, RunningMoments* moments) {
  moments->Restore(state[first].second.item<double>(), state[first + 1].second, state[first + 2].second);
}

}  // namespace

Normalizers::Normalizers(const v1::ModelConfig& config, int64_t obs_size, int64_t state_size, Collective* collective)
    : normalizes_observations_(config.normalize_observations()),
      normalizes_returns_(config.normalize_returns()),
      has_state_(state_size > 0),
      collective_(collective),
      obs_(obs_size),
      state_(state_size),
      return_(1) {}

ObsScale Normalizers::obs_scale() const {
  return normalizes_observations_ ? ObsScale::From(obs_) : ObsScale::Identity(obs_.mean().numel());
}

ObsScale Normalizers::state_scale() const {
  return normalizes_observations_ ? ObsScale::From(state_) : ObsScale::Identity(state_.mean().numel());
}

double Normalizers::return_scale() const {
  return normalizes_returns_ ? std::sqrt(return_.variance().item<double>() + kEpsilon) : 1.0;
}

absl::StatusOr<double> Normalizers::CountReturns(const torch::Tensor& returns, const torch::Tensor& value) {
  // What is not finite is skipped in training and must not stay in the statistics for ever either.
  const bool finite = AllFinite(returns);
  const torch::Tensor counted = Winsorize(returns.view({-1, 1}), return_);
  double spread = 0, rest = 0;
  if (collective_ == nullptr) {
    if (normalizes_returns_ && finite) return_.Update(counted);
    spread = returns.var(/*unbiased=*/false).item<double>();
    rest = (returns - value).var(/*unbiased=*/false).item<double>();
  } else {
    RunningMoments mine(3);
    mine.Update(torch::stack({counted.view({-1}), returns, returns - value}, 1));
    const auto all = MergeOverRanks(collective_, {mine, finite});
    if (!all.ok()) return all.status();
    RunningMoments of_returns(1);
    of_returns.Restore(all->moments.count(), all->moments.mean().narrow(0, 0, 1),
                       all->moments.variance().narrow(0, 0, 1));
    if (normalizes_returns_ && all->finite) return_.Merge(of_returns);
    spread = all->moments.variance()[1].item<double>();
    rest = all->moments.variance()[2].item<double>();
  }
  return spread > 0 ? 1 - rest / spread : 0;
}

absl::Status Normalizers::CountRows(const torch::Tensor& rows, const torch::Tensor& all, RunningMoments* moments) {
  const bool finite = AllFinite(all);
  const torch::Tensor counted = Winsorize(rows, *moments);
  if (collective_ == nullptr) {
    if (finite) moments->Update(counted);
    return absl::OkStatus();
  }
  RunningMoments mine(rows.size(1));
  mine.Update(counted);
  const auto merged = MergeOverRanks(collective_, {mine, finite});
  if (!merged.ok()) return merged.status();
  if (merged->finite) moments->Merge(merged->moments);
  return absl::OkStatus();
}

absl::Status Normalizers::CountObservations(const Batch& batch, const torch::Tensor& active) {
  if (!normalizes_observations_) return absl::OkStatus();
  const torch::Tensor& obs = batch["obs"];
  const int64_t steps = batch["reward"].size(0);
  torch::Tensor rows = obs.narrow(0, 0, steps).reshape({-1, obs.size(2)});
  if (active.defined()) rows = rows.index_select(0, active.nonzero().view({-1}));
  absl::Status status = CountRows(rows, obs, &obs_);
  if (!status.ok() || !has_state_) return status;
  const torch::Tensor& state = batch["state"];
  return CountRows(state.narrow(0, 0, steps).reshape({-1, state.size(2)}), state, &state_);
}

void Normalizers::AppendTo(StateTensors* state) const {
  Append("obs_normalizer", obs_, state);
  Append("return_normalizer", return_, state);
  if (has_state_) Append("state_normalizer", state_, state);
}

void Normalizers::Restore(const StateTensors& state, size_t first) {
  RestoreMoments(state, first, &obs_);
  RestoreMoments(state, first + 3, &return_);
  if (has_state_) RestoreMoments(state, first + 6, &state_);
}

}  // namespace skein
