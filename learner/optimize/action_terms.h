// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "learner/network/actor_critic.h"
#include "learner/optimize/minibatch.h"

namespace skein {

// Outputs of the current networks for the samples of a minibatch, float32, with gradients. Actor-critic losses are
// computed from them.
struct ActionTerms {
  torch::Tensor log_prob;  // [B], of the actions that were taken.
  torch::Tensor entropy;   // [B] if discrete, else a scalar that holds for all samples.
  torch::Tensor value;     // [B], in the value net's units.
};
// Reads obs, action and, for a central critic, critic_input. Matrix products in `precision`. With a memory the samples
// are those of Sequences [S, L], and B is S L: their steps, sequence after sequence, whether valid or not.
ActionTerms EvaluateActions(const ActorCritic& network, const Minibatch& samples, torch::ScalarType precision);

}  // namespace skein
