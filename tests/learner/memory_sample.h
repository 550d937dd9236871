// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "learner/algorithm/ppo/ppo.h"

// Recurrent networks by the book, for tests: PyTorch's own cells, step by step.
namespace skein {

// One step of torch::gru_cell or torch::lstm_cell: input [S, I], state [S, state_size] -> next state of the same shape.
torch::Tensor LiteralStep(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& state);

// The states [S, state_size] after each step of input [T, S, I]. ended bool [T, S]: an episode ended with this step, so
// that the next one begins with zeros. Before step t > 0, `change` (if any) may replace the state.
std::vector<torch::Tensor> LiteralStates(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& ended,
                                         torch::Tensor state,
                                         const std::function<torch::Tensor(int64_t t, const torch::Tensor&)>& change);

// As SampleNetwork and CentralNetwork, with a memory of five units.
ActorCriticOptions MemoryNetwork(MemoryKind kind, bool discrete = false, bool shared_trunk = false,
                                 bool critic_memory = false, bool central = false);

// Episodes of `envs` teams of `agents` (1: no alive mask), which terminate or are truncated; random observations and
// first states, actions near those of the current policy.
Batch CollectRemembering(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t envs, int64_t agents = 1);

}  // namespace skein
