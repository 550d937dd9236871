// SPDX-License-Identifier: Apache-2.0
#include "learner/network/memory_cell.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

namespace skein {
namespace {

// x, h: the gates' sums of the input and of the state, [S, G H].
torch::Tensor StepGru(const torch::Tensor& x, const torch::Tensor& h, const torch::Tensor& state) {
  const int64_t size = state.size(1);
  const torch::Tensor gates = (x.narrow(1, 0, 2 * size) + h.narrow(1, 0, 2 * size)).sigmoid();
  const torch::Tensor r = gates.narrow(1, 0, size), z = gates.narrow(1, size, size);
  const torch::Tensor n = (x.narrow(1, 2 * size, size) + r * h.narrow(1, 2 * size, size)).tanh();
  return (1 - z) * n + z * state;
}

// Sets `c` to the next one; returns the next h.
torch::Tensor StepLstm(const torch::Tensor& x, const torch::Tensor& h, torch::Tensor* c) {
  const int64_t size = c->size(1);
  const torch::Tensor sum = x + h;
  const auto gate = [&](int64_t i) { return sum.narrow(1, i * size, size); };
  *c = gate(1).sigmoid() * *c + gate(0).sigmoid() * gate(2).tanh();
  return gate(3).sigmoid() * c->tanh();
}

}  // namespace

torch::Tensor MemoryRun::States() const { return cell.defined() ? torch::cat({output, cell}, 2) : output; }

torch::Tensor MemoryRun::StatesAfter(int64_t step) const {
  return cell.defined() ? torch::cat({output[step], cell[step]}, 1) : output[step];
}

torch::Tensor MemoryRun::StatesOf(const torch::Tensor& rows) const {
  const auto of = [&](const torch::Tensor& all) { return all.flatten(0, 1).index_select(0, rows); };
  return cell.defined() ? torch::cat({of(output), of(cell)}, 1) : of(output);
}

MemoryRun RunMemory(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                    const torch::Tensor& state, const torch::Tensor& skips) {
  const int64_t steps = input.size(0), sequences = input.size(1), size = cell.size();
  const bool lstm = cell.kind == MemoryKind::kLstm;
  // One product for all steps is faster. In double precision each has its own, and gradients are summed step by step.
  const bool by_steps = input.scalar_type() == torch::kFloat64;
  std::vector<torch::Tensor> inputs;
  if (!by_steps) {
    inputs = torch::linear(input.reshape({steps * sequences, input.size(2)}), cell.weight_ih, cell.bias_ih)
                 .view({steps, sequences, cell.weight_ih.size(0)})
                 .unbind(0);
  }
  // On a device it would cost a wait to know in which steps none begins.
  const bool knows = begins.defined() && begins.is_cpu();
  torch::Tensor h = state.narrow(1, 0, size), c = lstm ? state.narrow(1, size, size) : torch::Tensor();
  std::vector<torch::Tensor> outputs, cells;
  outputs.reserve(steps);
  for (int64_t t = 0; t < steps; ++t) {
    if (begins.defined()) {
      const torch::Tensor fresh = begins.select(0, t);
      if (!knows || fresh.any().item<bool>()) {
        const torch::Tensor column = fresh.unsqueeze(1);
        h = h.masked_fill(column, 0);
        if (lstm) c = c.masked_fill(column, 0);
      }
    }
    const torch::Tensor h_before = h, c_before = c;
    const torch::Tensor x = by_steps ? torch::linear(input[t], cell.weight_ih, cell.bias_ih) : inputs[t];
    const torch::Tensor sums = torch::linear(h, cell.weight_hh, cell.bias_hh);
    h = lstm ? StepLstm(x, sums, &c) : StepGru(x, sums, h);
    if (skips.defined()) {
      const torch::Tensor skipped = skips.select(0, t).unsqueeze(1);
      h = torch::where(skipped, h_before, h);
      if (lstm) c = torch::where(skipped, c_before, c);
    }
    outputs.push_back(h);
    if (by_steps) h = h.view_as(h);  // So that what the next step gives back is summed before the output's part.
    if (lstm) cells.push_back(c);
  }
  return {torch::stack(outputs), lstm ? torch::stack(cells) : torch::Tensor()};
}

torch::Tensor StepMemory(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& state) {
  return RunMemory(cell, input.unsqueeze(0), {}, state).States()[0];
}

}  // namespace skein
