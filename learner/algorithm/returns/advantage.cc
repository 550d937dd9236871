// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/advantage.h"

#include <c10/util/Exception.h>
#include <torch/types.h>

namespace skein {
namespace {

// The same, row by row, where the data are not on the CPU.
torch::Tensor OnDevice(const AdvantageInput& input, double gamma, double lambda) {
  torch::Tensor advantage = torch::empty_like(input.reward);
  const int64_t steps = input.reward.size(0);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const auto row = [t](const torch::Tensor& tensor) { return tensor.select(0, t); };
    torch::Tensor a =
        row(input.reward) + (row(input.next_value) * gamma).masked_fill(row(input.terminated), 0) - row(input.value);
    if (t + 1 < steps) a = a + (advantage.select(0, t + 1) * (gamma * lambda)).masked_fill(row(input.done), 0);
    row(advantage).copy_(a);
  }
  return advantage;
}

}  // namespace

torch::Tensor GeneralizedAdvantage(const AdvantageInput& input, double gamma, double lambda) {
  const auto shape = input.reward.sizes();
  TORCH_CHECK(shape.size() == 2 && input.value.sizes() == shape && input.next_value.sizes() == shape &&
                  input.terminated.sizes() == shape && input.done.sizes() == shape,
              "advantage inputs must all be [T, M] like reward");
  if (!input.reward.is_cpu()) return OnDevice(input, gamma, lambda);
  const int64_t steps = shape[0], columns = shape[1];
  const torch::Tensor reward = input.reward.contiguous(), value = input.value.contiguous(),
                      next_value = input.next_value.contiguous(), terminated = input.terminated.contiguous(),
                      done = input.done.contiguous();
  torch::Tensor advantage = torch::empty({steps, columns}, torch::kFloat32);
  const float* r = reward.data_ptr<float>();
  const float* v = value.data_ptr<float>();
  const float* next_v = next_value.data_ptr<float>();
  const bool* is_terminated = terminated.data_ptr<bool>();
  const bool* is_done = done.data_ptr<bool>();
  float* a = advantage.data_ptr<float>();
  const float discount = static_cast<float>(gamma), trace = static_cast<float>(gamma * lambda);
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t i = t * columns; i < (t + 1) * columns; ++i) {
      // Chosen, not multiplied by 0: next_value may be anything, also not finite, where the episode terminated.
      const float bootstrap = is_terminated[i] ? 0.0f : discount * next_v[i];
      const float later = t + 1 == steps || is_done[i] ? 0.0f : trace * a[i + columns];
      a[i] = r[i] + bootstrap - v[i] + later;
    }
  }
  return advantage;
}

}  // namespace skein
