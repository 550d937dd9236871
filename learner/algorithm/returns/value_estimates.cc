// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/value_estimates.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "learner/algorithm/returns/posthumous_reward.h"

namespace skein {

absl::StatusOr<ValueEstimates> EstimateValues(const TrainingData& data, const Normalizers& normalizers, double gamma,
                                              BatchForward* forward) {
  const torch::NoGradGuard no_grad;
  const Batch& batch = data.batch;
  const torch::Tensor &reward = batch["reward"], &terminated = batch["terminated"], &truncated = batch["truncated"];
  const int64_t columns = data.share.columns, size = data.share.size();
  const auto values = forward->Values(data.critic, reward.device());
  if (!values.ok()) return values.status();
  torch::Tensor next_value = values->narrow(0, columns, size).clone();
  if (data.final_critic.size(0) > 0) {
    const auto final_values = forward->Values(data.final_critic, reward.device());
    if (!final_values.ok()) return final_values.status();
    next_value.index_copy_(0, batch["final_index"], *final_values);
  }
  if (batch.has("final_value")) {
    next_value = torch::where(truncated, batch["final_value"], next_value.view_as(reward)).view({size});
  }
  ValueEstimates estimates;
  estimates.value = values->narrow(0, 0, size);
  estimates.scale = normalizers.return_scale();
  const torch::Tensor credited = batch.has("active") ? CreditPosthumously(reward, batch["active"], gamma) : reward;
  estimates.input = {credited, (estimates.value * estimates.scale).view_as(reward),
                     (next_value * estimates.scale).view_as(reward), terminated,
                     torch::logical_or(terminated, truncated)};
  return estimates;
}

}  // namespace skein
