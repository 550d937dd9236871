// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/tensor_env.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr uint64_t kIndices = uint64_t{1} << 32;

bool IsIndex(double value, double bound) { return value >= 0 && value < bound && value == std::floor(value); }

}  // namespace

TensorEnv::StepResult TensorEnv::Step(const torch::Tensor& action) {
  const torch::NoGradGuard no_grad;
  StepResult result = Advance(action);
  const auto floats = torch::TensorOptions(torch::kFloat32).device(result.reward.device());
  result.final_obs = torch::empty({worlds(), spec().num_agents, spec().obs_size}, floats);
  result.final_state = torch::empty({worlds(), spec().global_state_size}, floats);
  Observe(result.final_obs);
  GlobalState(result.final_state);
  BeginEpisodes();
  return result;
}

absl::Status TensorEnv::CheckOptions(const Options& options) {
  if (options.worlds < 1) {
    return absl::InvalidArgumentError(absl::StrCat("worlds: got ", options.worlds, ", want at least 1"));
  }
  if (options.copies < 1 || options.worlds % options.copies != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("copies: got ", options.copies, ", want a divisor of worlds ", options.worlds));
  }
  if (options.max_episode_steps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_episode_steps: got ", options.max_episode_steps, ", want 0 (the environment's own) or more"));
  }
  if (options.first_env > kIndices - static_cast<uint64_t>(options.worlds)) {
    return absl::InvalidArgumentError(absl::StrCat("first_env: got ", options.first_env, ", want at most ",
                                                   kIndices - static_cast<uint64_t>(options.worlds)));
  }
  return absl::OkStatus();
}

absl::Status TensorEnv::CheckRows(const torch::Tensor& state) const {
  if (state.dim() != 2 || state.size(0) != worlds() || state.size(1) != state_size() ||
      state.scalar_type() != torch::kFloat64) {
    return absl::InvalidArgumentError(absl::StrCat("the state has ", state.dim(), " dimensions and ", state.numel(),
                                                   " numbers, want float64 [", worlds(), ", ", state_size(), "]"));
  }
  const torch::Tensor rows = state.contiguous();
  const double* row = rows.data_ptr<double>();
  const double limit = spec().max_episode_steps > 0 ? spec().max_episode_steps : static_cast<double>(kIndices);
  for (int64_t e = 0; e < worlds(); ++e, row += state_size()) {
    for (int64_t i = 0; i < state_size(); ++i) {
      if (std::isfinite(row[i])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("environment ", e, " of the state: number ", i, " is ", row[i], ", want a finite one"));
    }
    if (!IsIndex(row[0], static_cast<double>(kIndices)) || !IsIndex(row[1], limit)) {
      return absl::InvalidArgumentError(absl::StrCat("environment ", e, " of the state: episode ", row[0], ", step ",
                                                     row[1], "; want whole numbers under ", kIndices, " and ", limit));
    }
  }
  return absl::OkStatus();
}

}  // namespace skein
