// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// Inputs of generalised advantage estimation; float32, time-major; N columns (environments x agents).
struct AdvantageInput {
  torch::Tensor reward;      // [T, N]
  torch::Tensor value;       // [T, N], V(s_t)
  torch::Tensor next_value;  // [T, N], V of the true successor: V(final_obs) where the episode was truncated at t,
                             // ignored where it terminated, else V(s_{t+1}).
  torch::Tensor terminated;  // [T, N] bool
  torch::Tensor done;        // [T, N] bool, terminated or truncated
};

// Schulman et al. 2016, "High-dimensional continuous control using generalized advantage estimation", eq. 16:
//   delta_t = r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t);  A_t = delta_t + gamma lambda (1 - done_t) A_{t+1}
// Returns A [T, N], on the device of the input; returns-to-go for the value target are A + value.
torch::Tensor GeneralizedAdvantage(const AdvantageInput& input, double gamma, double lambda);

}  // namespace skein
