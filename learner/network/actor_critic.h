// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "learner/network/memory_cell.h"
#include "policy/policy_spec.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Shape and initialisation of the networks. Actors receive only the PolicySpec part.
struct ActorCriticOptions : PolicySpec {
  int64_t critic_input_size = 0;  // 0 = obs_size; more for a central critic. Unused with shared_trunk.
  bool critic_memory = false;     // The value function has a memory of its own. REQUIRES: memory, no shared_trunk.
  double init_gain = 1.4142135623730951;
  double policy_head_scale = 0.01;
  double init_log_std = -0.5;
};

// REQUIRES: config is resolved (every field set). A central critic reads an agent's observation and the global state,
// in this order (Yu et al. 2022, "The surprising effectiveness of PPO in cooperative multi-agent games", 5.3). A shared
// trunk reads observations and so rules it out.
ActorCriticOptions MakeActorCriticOptions(const v1::ModelConfig& config, const EnvSpec& spec);

// Policy and value networks. Parameters in a fixed order with fixed names: those of PolicyParameters (policy_spec.h),
// then "critic_memory...." if there is one, "value.<i>..." (none with shared_trunk) and "value.head...". Forward calls
// change nothing; several threads may run them at once while no thread writes parameters.
// With a memory, the calls below work on what it gives (RunMemory) in place of observations: the policy on the output h
// of memory(); the value function on h and, if the critic is central, the global state beside it, or with a memory of
// its own on the output of critic_memory(), whose input is critic_input.
class ActorCritic : public torch::nn::Module {
 public:
  // Initial weights are orthogonal (Saxe et al. 2014) from counter-based streams keyed by `seed`; biases are zero. A
  // memory's matrices have gain 1.
  ActorCritic(const ActorCriticOptions& options, uint64_t seed);
  // All parameters are zero; the caller fills them from a snapshot or a checkpoint.
  explicit ActorCritic(const ActorCriticOptions& options);

  // obs [B, O], or with a memory h [B, H] -> mean [B, D] (continuous) or logits [B, choices] (discrete).
  torch::Tensor PolicyHead(const torch::Tensor& obs) const;
  // input [B, critic_input] -> [B]. With a shared trunk, input is obs [B, O]. With a memory, [B, value_input_size()].
  torch::Tensor Value(const torch::Tensor& input) const;
  // Both. A shared trunk is computed once, from obs. Without a shared trunk, critic_input may differ from obs.
  std::pair<torch::Tensor, torch::Tensor> PolicyHeadAndValue(const torch::Tensor& obs,
                                                             const torch::Tensor& critic_input) const;

  // The policy's memory, which the value function reads too unless it has one of its own; may not exist.
  const MemoryCell& memory() const { return memory_; }
  const MemoryCell& critic_memory() const { return critic_memory_; }
  int64_t value_input_size() const { return value_input_size_; }

  const torch::Tensor& log_std() const { return log_std_; }  // [D]; undefined if discrete.
  const ActorCriticOptions& options() const { return options_; }
  // The parameters that an actor needs: all but the value function's. The tensors are the parameters, not copies.
  std::vector<std::pair<std::string, torch::Tensor>> PolicyParameters() const;
  std::vector<std::pair<std::string, torch::Tensor>> AllParameters() const;

 private:
  // Weight [outputs, inputs] and bias [outputs] of each layer.
  using Layers = std::vector<std::pair<torch::Tensor, torch::Tensor>>;

  torch::Tensor AddParameter(const std::string& name, std::vector<int64_t> shape);
  MemoryCell AddMemory(const std::string& name, int64_t inputs);
  void AddLayer(const std::string& name, int64_t inputs, int64_t outputs, Layers* layers);
  // Appends the hidden layers "<name>.<i>"; returns the number of their outputs.
  int64_t AddHidden(const std::string& name, int64_t inputs, Layers* layers);
  // The first `activated` layers are followed by the activation function.
  torch::Tensor Forward(const Layers& layers, size_t activated, torch::Tensor x) const;

  ActorCriticOptions options_;
  MemoryCell memory_, critic_memory_;
  int64_t value_input_size_ = 0;
  Layers trunk_;           // Hidden layers only; empty unless shared.
  Layers policy_, value_;  // Head last.
  torch::Tensor log_std_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;  // In the documented order.
  size_t num_policy_parameters_ = 0;                               // These come first.
};

}  // namespace skein
