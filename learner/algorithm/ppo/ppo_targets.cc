// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo_targets.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "learner/algorithm/returns/value_estimates.h"
#include "learner/algorithm/returns/vtrace.h"
#include "learner/network/distribution.h"
#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

// log(current policy / behaviour policy) of each action, [T, M]; 0 where the agent is not active.
absl::StatusOr<torch::Tensor> LogRatio(const TrainingData& data, const ActorCritic& network, BatchForward* forward) {
  const auto head = forward->PolicyHead(data.policy);
  if (!head.ok()) return head.status();
  const torch::Tensor action = data.samples["action"].cpu();
  const torch::Tensor log_prob = network.options().discrete ? CategoricalLogProb(*head, action)
                                                            : GaussianLogProb(*head, network.log_std().cpu(), action);
  const torch::Tensor log_ratio = (log_prob - data.samples["log_prob"].cpu()).view_as(data.batch["reward"]);
  return data.batch.has("active") ? log_ratio.masked_fill(data.batch["active"].logical_not(), 0) : log_ratio;
}

}  // namespace

absl::StatusOr<PpoTargets> ComputePpoTargets(const v1::RunConfig& config, const TrainingData& data,
                                             const ActorCritic& network, Collective* collective, BatchForward* forward,
                                             Normalizers* normalizers) {
  const torch::NoGradGuard no_grad;
  const v1::PpoConfig& ppo = config.ppo();
  const int64_t size = data.share.size();
  const auto estimates = EstimateValues(data, *normalizers, ppo.gamma(), forward);
  if (!estimates.ok()) return estimates.status();
  const torch::Tensor value = estimates->input.value.view({size});
  PpoTargets targets;
  targets.old_value = estimates->value;
  torch::Tensor returns;
  if (config.sync().mode() == v1::SYNC_MODE_ASYNC) {
    const auto log_ratio = LogRatio(data, network, forward);
    if (!log_ratio.ok()) return log_ratio.status();
    const VtraceTargets vtrace =
        Vtrace(estimates->input, *log_ratio, {ppo.gamma(), ppo.gae_lambda(), ppo.vtrace_rho_max(), ppo.vtrace_c_max()});
    targets.advantage = vtrace.advantage.view({size});
    returns = vtrace.target.view({size});
    std::vector<double> rho = {vtrace.mean_rho};
    if (collective != nullptr) {
      rho[0] *= static_cast<double>(size) / static_cast<double>(data.share.total_size());
      if (absl::Status s = SumOverRanks(collective, &rho); !s.ok()) return s;
    }
    targets.vtrace_rho = rho[0];
  } else {
    targets.advantage = GeneralizedAdvantage(estimates->input, ppo.gamma(), ppo.gae_lambda()).view({size});
    returns = targets.advantage + value;
  }
  targets.value_target = returns / estimates->scale;
  const auto explained = data.active.defined() ? normalizers->CountReturns(returns.masked_select(data.active),
                                                                           value.masked_select(data.active))
                                               : normalizers->CountReturns(returns, value);
  if (!explained.ok()) return explained.status();
  targets.explained_variance = *explained;
  return targets;
}

}  // namespace skein
