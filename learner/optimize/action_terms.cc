// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/action_terms.h"

#include <torch/types.h>

#include <tuple>
#include <utility>

#include "learner/network/distribution.h"
#include "learner/optimize/autocast.h"

namespace skein {
namespace {

// What a memory gives in each step, [S, L, H].
torch::Tensor Remember(const MemoryCell& cell, const Minibatch& samples, const char* input, const char* burn_input,
                       const char* first) {
  torch::Tensor state = samples[first];
  if (samples.has("burn_skips")) {
    const torch::NoGradGuard no_grad;
    state = RunMemory(cell, samples[burn_input].transpose(0, 1), samples["burn_begins"].t(), state,
                      samples["burn_skips"].t())
                .StatesAfter(-1);
  }
  return RunMemory(cell, samples[input].transpose(0, 1), samples["begins"].t(), state).output.transpose(0, 1);
}

// What the networks read of sequences: the policy and the value function, [S L, ...].
std::pair<torch::Tensor, torch::Tensor> Remembered(const ActorCritic& network, const Minibatch& samples) {
  torch::Tensor policy = Remember(network.memory(), samples, "obs", "burn_obs", "memory_state"), value = policy;
  if (network.critic_memory().exists()) {
    value = Remember(network.critic_memory(), samples, "critic_input", "burn_critic_input", "critic_memory_state");
  } else if (samples.has("global_state")) {
    value = torch::cat({policy, samples["global_state"]}, 2);
  }
  return {policy.flatten(0, 1), value.flatten(0, 1)};
}

}  // namespace

ActionTerms EvaluateActions(const ActorCritic& network, const Minibatch& samples, torch::ScalarType precision) {
  const torch::Tensor& obs = samples["obs"];
  const bool remembers = network.memory().exists();
  const torch::Tensor action = remembers ? samples["action"].flatten(0, 1) : samples["action"];
  torch::Tensor head, value;
  {
    const ScopedAutocast autocast(obs.device(), precision);
    if (remembers) {
      const auto [policy_input, value_input] = Remembered(network, samples);
      std::tie(head, value) = network.PolicyHeadAndValue(policy_input, value_input);
    } else {
      std::tie(head, value) = network.PolicyHeadAndValue(obs, samples.value_input());
    }
  }
  head = head.to(torch::kFloat32);
  value = value.to(torch::kFloat32);
  if (network.options().discrete) return {CategoricalLogProb(head, action), CategoricalEntropy(head), value};
  return {GaussianLogProb(head, network.log_std(), action), GaussianEntropy(network.log_std()), value};
}

}  // namespace skein
