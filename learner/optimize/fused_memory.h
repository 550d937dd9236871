// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/network/memory_cell.h"
#include "learner/optimize/packed_memory.h"
#include "policy/aligned_floats.h"

namespace skein {

// A hand-written memory over sequences, with its gradient by back-propagation through time, for one thread on the CPU.
//   Forward -> output, whose reader writes delta -> Backward -> gradients of the weights
// A step is one product with the input and the state and one pass over the gates (memory_kernels.h); backwards one
// product with the gates' derivatives. The gradient of the weights is one product for about a hundred rows. Equal to
// RunMemory and autograd up to rounding; a sequence's output does not depend on the others or on later steps, to the
// bit. Not thread-safe.
class FusedMemory {
 public:
  // The gradient is added to what `gradients` point to: those of weight_ih, weight_hh, bias_ih and bias_hh, in the
  // cell's layout. Both must keep their addresses and outlive this.
  FusedMemory(const MemoryCell& cell, const std::vector<float*>& gradients);

  // Reads the cell's current weights.
  void Pack() { weights_.Pack(); }
  // Sequences of `steps` steps: numbers index[0..count) of input [*, L, I], begins [*, L] and state [*, state_size], as
  // RunMemory has them but with the sequence first.
  void Forward(const float* input, const bool* begins, const float* state, const int64_t* index, int64_t count,
               int64_t steps);
  // Adds the gradient of a loss whose derivatives by the outputs are in delta(), and by an LSTM's last c in
  // cell_delta(). REQUIRES: Forward, once for each call.
  void Backward();

  // Row t * count + s: h after step t of sequence s, and d(loss)/d(h), which Forward sets to zero. Rows are stride()
  // floats apart; those beyond H are zeros.
  const float* output() const { return output_.data(); }
  float* delta() { return delta_.data(); }
  // What chunks of longer sequences hand on; row s is of sequence s. cell: an LSTM's c after the last step. cell_delta:
  // d(loss)/d(cell), which Forward sets to zero; after Backward of c before the first step. state_delta, after
  // Backward: d(loss)/d(h before the first step). The last two mean nothing where an episode begins with that step.
  const float* cell() const { return cell_.data(); }
  float* cell_delta() { return cell_carry_.data(); }
  const float* state_delta() const { return carry_.data(); }
  int64_t stride() const { return weights_.width(); }

  // Without gradients: all `steps` steps of columns [first, first + count) of input [L, M, I], begins [L, M] and state
  // [M, state_size], as RunMemory has them. Writes h, and an LSTM's c, after each step: output [L, M, H], cell [L, M,
  // H]. With the bits of Forward. Forward must come again before Backward.
  struct Run {
    const float* input;
    const bool* begins;
    const float* state;
    int64_t steps, columns;
    float *output, *cell;
  };
  void RunColumns(const Run& run, int64_t first, int64_t count);

 private:
  bool lstm() const { return weights_.kind() == MemoryKind::kLstm; }
  // Room for `rows` rows of steps of `count` sequences.
  void MakeRoom(int64_t rows, int64_t count);
  // The input of one row, and the state before it, `size` units that are not zeros.
  void PutInput(int64_t row, const float* input);
  void PutState(int64_t row, const float* h, const float* c, int64_t size);
  // One step: rows [first, first + count_).
  void Step(int64_t first);
  void StepBack(int64_t first);

  PackedMemory weights_;
  const std::vector<float*> gradients_;
  int64_t steps_ = 0, count_ = 0;
  std::vector<uint8_t> begins_;       // [L, S]
  AlignedFloats in_;                  // [L S, row]: h before each step, and its input.
  AlignedFloats gate_;                // [L S, gate_row]: the gates, then the derivatives by their sums.
  AlignedFloats cell_before_;         // [L S, width]: LSTM: c before each step.
  AlignedFloats tanh_cell_;           // The same of tanh(c) after it.
  AlignedFloats cell_;                // [S, width]: c after the step in hand.
  AlignedFloats output_, delta_;      // [L S, width]
  AlignedFloats carry_, cell_carry_;  // [S, width]: d(loss)/d(state after the step in hand), from later ones.
  AlignedFloats sum_;                 // [gate_row, row]: gradient of the weights.
};

}  // namespace skein
