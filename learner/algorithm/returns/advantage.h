// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// Inputs of generalised advantage estimation; float32, time-major; M columns (environments x agents).
struct AdvantageInput {
  torch::Tensor reward;      // [T, M]
  torch::Tensor value;       // [T, M], V(s_t)
  torch::Tensor next_value;  // [T, M], V of the true successor: V(final_obs) where the episode was truncated at t,
                             // ignored where it terminated, else V(s_{t+1}).
  torch::Tensor terminated;  // [T, M] bool
  torch::Tensor done;        // [T, M] bool, terminated or truncated
};

// Schulman et al. 2016, "High-dimensional continuous control using generalized advantage estimation", eq. 16:
//   delta_t = r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t);  A_t = delta_t + gamma lambda (1 - done_t) A_{t+1}
// Returns A [T, M], on the device of the input; returns-to-go for the value target are A + value.
torch::Tensor GeneralizedAdvantage(const AdvantageInput& input, double gamma, double lambda);

}  // namespace skein
