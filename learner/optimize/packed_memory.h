// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/network/memory_cell.h"
#include "policy/aligned_floats.h"
#include "policy/packed_layer.h"

namespace skein {

// The weights of a memory as the products of a step and of its derivative need them, and these products. h before a
// step and the step's input x stand beside each other in one row, so that a step has one product with both and so has
// the gradient of the weights. Rows are row() and gate_row() floats apart:
//   in    h [Padded(H)], x [I], 1, zeros
//   gate  four parts [Padded(H)]. LSTM: i, f, g, o. GRU: r, z, W_hn h + b_hn, W_in x + b_in (memory_kernels.h)
// Const calls may run in several threads at once.
class PackedMemory {
 public:
  // The cell's weights must outlive this. Calls Pack().
  explicit PackedMemory(const MemoryCell& cell);
  PackedMemory(const PackedMemory&) = delete;
  PackedMemory& operator=(const PackedMemory&) = delete;

  // Reads the cell's current weights.
  void Pack();

  MemoryKind kind() const { return cell_.kind; }
  int64_t inputs() const { return inputs_; }
  int64_t size() const { return size_; }
  int64_t width() const { return width_; }  // Padded(H)
  int64_t row() const { return width_ + Padded(inputs_ + 1); }
  int64_t gate_row() const { return 4 * width_; }

  // gate = the sums of the gates before their activations.
  void Sum(const float* in, int64_t rows, float* gate) const;
  // gate: derivatives by these sums -> carry [rows, width]: the derivatives by h. A GRU's are added to what is there.
  void BackToState(const float* gate, int64_t rows, float* carry) const;
  // Adds the derivatives by the weights to `sum` [gate_row, row].
  void AddOuterProducts(const float* in, const float* gate, int64_t rows, float* sum) const;
  // Adds such a sum to weight_ih, weight_hh, bias_ih and bias_hh, in the cell's layout.
  void AddToWeights(const float* sum, const std::vector<float*>& weights) const;

 private:
  // A part's place in the cell's tensors, in gates, and what it reads.
  struct Part {
    int64_t gate;
    bool state, input;
  };
  Part PartAt(int64_t number) const;

  const MemoryCell cell_;
  const int64_t inputs_, size_, width_;
  // Each gate takes width_ rows, so that none begins in the middle of a vector. `both`: gates that read h and x, all of
  // an LSTM's; the other two parts of a GRU follow.
  const int64_t both_;
  std::vector<float> weight_, bias_;  // [both_ width, width + I]
  std::vector<float> state_weight_, state_bias_, input_weight_, input_bias_;
  AlignedFloats weight_hh_;  // [width of those with a state, width]: the second factor of BackToState.
  PackedLayer from_both_, from_state_, from_input_;
};

}  // namespace skein
