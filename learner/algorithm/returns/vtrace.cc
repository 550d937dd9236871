// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/vtrace.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

namespace skein {

VtraceTargets Vtrace(const AdvantageInput& input, const torch::Tensor& log_ratio, const VtraceOptions& options) {
  const auto shape = input.reward.sizes();
  TORCH_CHECK(shape.size() == 2 && input.value.sizes() == shape && input.next_value.sizes() == shape &&
                  input.terminated.sizes() == shape && input.done.sizes() == shape && log_ratio.sizes() == shape,
              "V-trace inputs must all be [T, M] like reward");
  const int64_t steps = shape[0], columns = shape[1];
  const torch::Tensor reward = input.reward.contiguous(), value = input.value.contiguous(),
                      next_value = input.next_value.contiguous(), terminated = input.terminated.contiguous(),
                      done = input.done.contiguous(), log_w = log_ratio.contiguous();
  VtraceTargets result{torch::empty({steps, columns}, torch::kFloat32), torch::empty({steps, columns}, torch::kFloat32),
                       0};
  const float* r = reward.data_ptr<float>();
  const float* v = value.data_ptr<float>();
  const float* next_v = next_value.data_ptr<float>();
  const float* lw = log_w.data_ptr<float>();
  const bool* is_terminated = terminated.data_ptr<bool>();
  const bool* is_done = done.data_ptr<bool>();
  float* target = result.target.data_ptr<float>();
  float* advantage = result.advantage.data_ptr<float>();
  const float discount = static_cast<float>(options.gamma), lambda = static_cast<float>(options.lambda);
  const float rho_max = static_cast<float>(options.rho_max), c_max = static_cast<float>(options.c_max);
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t i = t * columns; i < (t + 1) * columns; ++i) {
      // Infinity is cut to the largest weight; what is no number stays that, for the caller to see.
      const float w = std::exp(lw[i]);
      const float rho = w > rho_max ? rho_max : w;
      const float c = lambda * (w > c_max ? c_max : w);
      // Chosen, not multiplied by 0: next_value may be anything, also not finite, where the episode terminated.
      const float error = r[i] + (is_terminated[i] ? 0.0f : discount * next_v[i]) - v[i];
      const float later = t + 1 == steps || is_done[i] ? 0.0f : discount * (target[i + columns] - v[i + columns]);
      target[i] = v[i] + rho * error + c * later;
      advantage[i] = error + lambda * later;
      result.mean_rho += rho;
    }
  }
  result.mean_rho /= static_cast<double>(std::max<int64_t>(1, steps * columns));
  return result;
}

}  // namespace skein
