// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/action_terms.h"

#include <torch/types.h>

#include <tuple>

#include "learner/network/distribution.h"
#include "learner/optimize/autocast.h"

namespace skein {

ActionTerms EvaluateActions(const ActorCritic& network, const Minibatch& samples, torch::ScalarType precision) {
  const torch::Tensor &obs = samples["obs"], &action = samples["action"];
  torch::Tensor head, value;
  {
    const ScopedAutocast autocast(obs.device(), precision);
    std::tie(head, value) = network.PolicyHeadAndValue(obs, samples.value_input());
  }
  head = head.to(torch::kFloat32);
  value = value.to(torch::kFloat32);
  if (network.options().discrete) return {CategoricalLogProb(head, action), CategoricalEntropy(head), value};
  return {GaussianLogProb(head, network.log_std(), action), GaussianEntropy(network.log_std()), value};
}

}  // namespace skein
