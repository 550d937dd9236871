// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// What an agent's team is rewarded with after the agent's own part of an episode is over belongs to the agent's last
// action, discounted: else an agent that is done loses its share of what the others still reach, and it pays to wait.
// Cohen et al. 2021, "On the Use and Misuse of Absorbing States in Multi-agent Reinforcement Learning", call it
// posthumous credit.
//   c_t = r_t + gamma u_t;  u_t = c_{t+1} if the agent took no part in step t+1, else 0;  u_{T-1} = 0
// reward float32 [T, M], active bool [T, M], an agent's episodes beginning with a row in which it takes part. Returns
// c [T, M] on their device; rows of agents that took no part mean nothing. What comes after the last row is lost.
torch::Tensor CreditPosthumously(const torch::Tensor& reward, const torch::Tensor& active, double gamma);

}  // namespace skein
