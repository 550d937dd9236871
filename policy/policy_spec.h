// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/env.h"
#include "policy/activation.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The kind of memory that a policy has of earlier steps.
enum class MemoryKind { kNone, kGru, kLstm };

// The shape of a policy: actors and the learner make the same one from the run's configuration and the environment's
// spec.   observation [O] -> normaliser -> memory (if any) -> hidden layers -> head
struct PolicySpec {
  int64_t obs_size = 0;     // O
  int64_t action_size = 0;  // D real numbers, or C choices.
  bool discrete = false;
  MemoryKind memory = MemoryKind::kNone;
  int64_t memory_size = 0;  // H, units of the memory; 0 without one.
  std::vector<int64_t> hidden = {64, 64};
  ActivationKind activation = ActivationKind::kTanh;
  bool shared_trunk = false;  // The value function shares the hidden layers. Sets only their names; acting is the same.

  // The head: a mean for each real number, or a logit for each choice.
  int64_t head_size() const { return action_size; }
  // Floats that one agent's memory carries from step to step: h [H] of a GRU, h [H] then c [H] of an LSTM.
  int64_t state_size() const {
    return memory == MemoryKind::kLstm ? 2 * memory_size : memory == MemoryKind::kGru ? memory_size : 0;
  }
  // Size of the input of the first hidden layer, or of the head if there is none.
  int64_t feature_size() const { return memory == MemoryKind::kNone ? obs_size : memory_size; }
};

// REQUIRES: config is resolved (every field set).
PolicySpec MakePolicySpec(const v1::ModelConfig& config, const EnvSpec& env);

// A parameter's name and shape.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
};

// The parameters of a policy of this spec in order, with PyTorch's names and shapes: "memory.weight_ih" [G H, O],
// "memory.weight_hh" [G H, H], "memory.bias_ih" and "memory.bias_hh" [G H] (G = 3 gates of a GRU, 4 of an LSTM), then
// "policy.<i>.weight|bias" ("trunk.<i>..." with shared_trunk), "policy.head.weight|bias", and "log_std" [D] unless
// discrete.
std::vector<ParameterSpec> PolicyParameters(const PolicySpec& spec);

}  // namespace skein
