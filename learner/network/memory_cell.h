// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "policy/policy_spec.h"

// The memory of a recurrent network as the learner computes it, with gradients. policy/recurrent.h has the formulas and
// computes the same without Torch.
namespace skein {

// Weights of a gated memory, in PyTorch's layout (torch.nn.GRUCell, torch.nn.LSTMCell): [G H, I], [G H, H], [G H] and
// [G H], where G is 3 (r, z, n) or 4 (i, f, g, o). The tensors are a network's parameters, not copies.
struct MemoryCell {
  MemoryKind kind = MemoryKind::kNone;
  torch::Tensor weight_ih, weight_hh, bias_ih, bias_hh;

  bool exists() const { return kind != MemoryKind::kNone; }
  int64_t size() const { return weight_hh.size(1); }  // H
  // Numbers in a state: h, then c of an LSTM.
  int64_t state_size() const { return kind == MemoryKind::kLstm ? 2 * size() : size(); }
};

// What a memory gave in L steps of S sequences.
struct MemoryRun {
  torch::Tensor output;  // [L, S, H], h after each step.
  torch::Tensor cell;    // The same of c; undefined unless it is an LSTM.

  torch::Tensor States() const;  // [L, S, state_size], after each step, also of episodes that ended with it.
  torch::Tensor StatesAfter(int64_t step) const;            // [S, state_size]
  torch::Tensor StatesOf(const torch::Tensor& rows) const;  // [K, state_size] of rows t S + s.
};

// Runs `cell` over L steps. input [L, S, I]; state [S, state_size] before the first step. begins, bool [L, S]: an
// episode begins with this step, so that the state before it is zeros; undefined: none does. skips, bool [L, S]: the
// state stays as it is in this step; undefined: nowhere. The products with the input are one for all steps. Pure;
// follows gradients. A sequence's result does not depend on how many steps follow, to the bit. In double precision
// there is a product for each step, and gradients do not depend on where the steps are divided among calls, to the bit,
// either.
MemoryRun RunMemory(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                    const torch::Tensor& state, const torch::Tensor& skips = {});

// One step: input [S, I], state [S, state_size] -> next state of the same shape.
torch::Tensor StepMemory(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& state);

}  // namespace skein
