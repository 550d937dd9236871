// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// Posthumous credit (Cohen et al. 2021, "On the Use and Misuse of Absorbing States in Multi-agent Reinforcement
// Learning"): adds the team's rewards after the end of an agent's own part of an episode, discounted, to the agent's
// last action. Without it, an agent that finishes early loses its share of the later team reward, so that policies
// learn to delay the end.
//   c_t = r_t + gamma u_t;  u_t = c_{t+1} if the agent is not active in step t+1, else 0;  u_{T-1} = 0
// reward float32 [T, M]; active bool [T, M], the alive mask, which is 1 in the first row of an agent's episode. Returns
// c [T, M] on their device; rows that are not active have no meaning. Rewards after row T-1 are not credited.
torch::Tensor CreditPosthumously(const torch::Tensor& reward, const torch::Tensor& active, double gamma);

}  // namespace skein
