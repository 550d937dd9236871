// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/network/memory_cell.h"
#include "policy/aligned_floats.h"
#include "policy/packed_layer.h"

namespace skein {

// A hand-written memory over sequences, with its gradient by back-propagation through time, for one thread on the CPU.
//   Forward -> output, whose reader writes delta -> Backward -> gradients of the weights
// The products with the inputs are one for all steps, in both directions; what each step needs is one product with the
// state. Equal to RunMemory and autograd up to rounding; a sequence's output does not depend on the others or on later
// steps, to the bit. Not thread-safe.
class FusedMemory {
 public:
  // The gradient is added to what `gradients` point to: those of weight_ih, weight_hh, bias_ih and bias_hh, in the
  // cell's layout. Both must keep their addresses and outlive this.
  FusedMemory(const MemoryCell& cell, const std::vector<float*>& gradients);
  FusedMemory(const FusedMemory&) = delete;
  FusedMemory& operator=(const FusedMemory&) = delete;

  // Reads the cell's current weights.
  void Pack();
  // Sequences of `steps` steps: numbers index[0..count) of input [*, L, I], begins [*, L] and state [*, state_size],
  // as RunMemory has them but with the sequence first.
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
  const float* cell() const { return cell_state_.data(); }
  float* cell_delta() { return cell_carry_.data(); }
  const float* state_delta() const { return carry_.data(); }
  int64_t stride() const { return width_; }

 private:
  void StepGru(int64_t t);
  void StepLstm(int64_t t);
  void StepBackGru(int64_t t);
  void StepBackLstm(int64_t t);
  // Adds gate rows^T x inputs to the gradient of gates [first, first + count) of a weight matrix with `inputs` columns.
  void AddWeightGradient(const float* gates, int64_t gate_row, int64_t first, int64_t count, const float* in,
                         int64_t in_row, int64_t inputs, float* weight, float* bias);

  const MemoryCell cell_;
  const std::vector<float*> gradients_;
  const int64_t inputs_, size_, width_;  // I, H, Padded(H)
  const int64_t gates_;                  // G
  // Each gate takes width_ rows, so that none begins in the middle of a vector.
  std::vector<float> weight_ih_, bias_ih_, bias_hh_;
  AlignedFloats weight_hh_;  // [G width, width]: the second factor of a product, too.
  std::vector<float> from_state_weight_;
  PackedLayer from_input_, from_state_;

  int64_t steps_ = 0, count_ = 0;
  std::vector<uint8_t> begins_;  // [L, S]
  AlignedFloats input_;          // [L S, Padded(I)]
  AlignedFloats gate_;           // [L S, G width]: the gates, then their derivatives before the activation.
  AlignedFloats sums_;           // [S, G width]: products with the state.
  AlignedFloats extra_;          // [L S, width]: GRU: W_hn h + b_hn, then its derivative. LSTM: tanh(c).
  AlignedFloats before_;         // [L S, width]: h before each step.
  AlignedFloats cell_before_;    // The same of c.
  AlignedFloats cell_state_;     // [S, width]: c after the step in hand.
  AlignedFloats output_, delta_;
  AlignedFloats carry_, cell_carry_;  // [S, width]: d(loss)/d(state before the step in hand).
  AlignedFloats grad_block_;          // Gradient of one gate.
};

}  // namespace skein
