// SPDX-License-Identifier: Apache-2.0
#include "policy/layer_stack.h"

#include <algorithm>

#include "policy/dense_kernels.h"

namespace skein {

LayerStack::LayerStack(const PolicySpec& spec, absl::Span<const std::vector<float>> values)
    : activation_(spec.activation) {
  int64_t inputs = spec.feature_size();
  for (size_t i = 0; i <= spec.hidden.size(); ++i) {
    const int64_t outputs = i < spec.hidden.size() ? spec.hidden[i] : spec.head_size();
    layers_.emplace_back(values[2 * i].data(), values[2 * i + 1].data(), inputs, outputs);
    inputs = outputs;
  }
}

void LayerStack::Forward(const float* x, int64_t x_row, int64_t rows, float* head) const {
  thread_local AlignedFloats input, output;
  const float* from = x;
  int64_t stride = x_row;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int64_t width = Padded(layers_[i].outputs());
    MakeRoom(rows * width, &output);
    layers_[i].Forward(from, stride, rows, output.data());
    if (i + 1 < layers_.size()) Activate(activation_, output.data(), rows * width);
    input.swap(output);
    from = input.data();
    stride = width;
  }
  const int64_t size = layers_.back().outputs();
  for (int64_t i = 0; i < rows; ++i) head = std::copy_n(from + i * stride, size, head);
}

}  // namespace skein
