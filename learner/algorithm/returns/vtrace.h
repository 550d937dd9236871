// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/algorithm/returns/advantage.h"

// Values and advantages from steps that older policies made: V-trace, Espeholt et al. 2018, "IMPALA".
// Pure functions of tensors [T, M]: T steps of M columns.
namespace skein {

struct VtraceOptions {
  double gamma, lambda;
  double rho_max, c_max;
};

struct VtraceTargets {
  torch::Tensor target;     // [T, M], vs_t: estimated value of s_t under the current policy
  torch::Tensor advantage;  // [T, M]
  double mean_rho;          // Mean of rho_t: 1 when on-policy
};

// V-trace, Espeholt et al. 2018, "IMPALA", eq. 1 and remark 2. With w_t = pi(a_t|s_t) / mu(a_t|s_t), rho_t =
// min(rho_max, w_t) and c_t = lambda min(c_max, w_t), terminated and done as for GeneralizedAdvantage:
//   delta_t = rho_t (r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t))
//   vs_t    = V(s_t) + delta_t + gamma c_t (1 - done_t) (vs_{t+1} - V(s_{t+1}))
//   A_t     = r_t + gamma (1 - terminated_t) V(s'_t) - V(s_t) + gamma lambda (1 - done_t) (vs_{t+1} - V(s_{t+1}))
// The advantage is q_t - V(s_t) with the q_t of the paper at lambda = 1, and GeneralizedAdvantage when every w is 1. It
// is not weighted by rho_t: the policy's loss must weight the action's own step, as PpoLoss does by its ratio.
// log_ratio [T, M] is log w.
VtraceTargets Vtrace(const AdvantageInput& input, const torch::Tensor& log_ratio, const VtraceOptions& options);

}  // namespace skein
