// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/aligned_floats.h"
#include "policy/dense_kernels.h"

namespace skein {

// A fully connected layer y = W x + b. W is stored transposed and padded as the products need it (dense_kernels.h), in
// panels of 64 outputs: in a wide layer the data that one tile of a product reads are then contiguous.
// Pack() and weight() need the parameters to exist; Forward does not. Const calls may run in several threads at once.
class PackedLayer {
 public:
  // weight [outputs, inputs], bias [outputs]. Calls Pack().
  PackedLayer(const float* weight, const float* bias, int64_t inputs, int64_t outputs);

  // Copies the parameters' current values into the packed form.
  void Pack();
  // x: rows of `inputs` floats, x_row apart -> y: rows of Padded(outputs) floats, those beyond `outputs` zero, y_row
  // apart or without gaps.
  void Forward(const float* x, int64_t x_row, int64_t rows, float* y, int64_t y_row) const;
  void Forward(const float* x, int64_t x_row, int64_t rows, float* y) const {
    Forward(x, x_row, rows, y, Padded(outputs_));
  }

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  const float* weight() const { return weight_; }

 private:
  // Outputs of a panel; the last one has the remainder.
  static constexpr int64_t kPanel = 64;
  int64_t PanelWidth(int64_t first) const { return std::min(kPanel, Padded(outputs_) - first); }

  const float* const weight_;
  const float* const bias_;
  const int64_t inputs_, outputs_;
  AlignedFloats packed_weight_;  // Panel after panel: [inputs, its width].
  AlignedFloats packed_bias_;    // [Padded(outputs)]
};

}  // namespace skein
