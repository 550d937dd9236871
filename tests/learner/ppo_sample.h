// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "learner/algorithm/ppo/ppo.h"

// A small run for tests of Ppo: three observations, two actions, eight hidden units, minibatches of 8, two epochs.
namespace skein {

v1::RunConfig SampleConfig();
ActorCriticOptions SampleNetwork(bool discrete = false, bool shared_trunk = false);

torch::Tensor LogProb(const ActorCritic& network, const torch::Tensor& head, const torch::Tensor& action);

// Random observations and rewards, actions of the current policy, no episode ends.
Batch CollectFrom(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t columns);
// The same with episodes that terminate and others that are truncated.
Batch CollectEpisodes(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t columns);

// With a critic that also reads a global state of two numbers.
ActorCriticOptions CentralNetwork(bool discrete = false);
// Episodes of `envs` teams of `agents`, some of which end before their team's episode.
Batch CollectTeams(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t envs, int64_t agents);

// Update, which must succeed.
UpdateStats Train(Algorithm& algorithm, const Batch& batch, double progress, uint64_t iteration);

// The tensor of this name; a failure if there is none.
torch::Tensor Find(const std::vector<std::pair<std::string, torch::Tensor>>& state, const std::string& name);
// Between the numbers of two states, which must have the same names.
double LargestDifference(const std::vector<std::pair<std::string, torch::Tensor>>& got,
                         const std::vector<std::pair<std::string, torch::Tensor>>& want);
// Names and bits of model and optimizer are equal.
void ExpectEqualStates(const Algorithm& a, const Algorithm& b);

}  // namespace skein
