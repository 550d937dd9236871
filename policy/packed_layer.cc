// SPDX-License-Identifier: Apache-2.0
#include "policy/packed_layer.h"

#include <algorithm>

#include "policy/dense_kernels.h"

namespace skein {

PackedLayer::PackedLayer(const float* weight, const float* bias, int64_t inputs, int64_t outputs)
    : weight_(weight),
      bias_(bias),
      inputs_(inputs),
      outputs_(outputs),
      packed_weight_(inputs * Padded(outputs)),
      packed_bias_(Padded(outputs)) {
  Pack();
}

void PackedLayer::Pack() {
  Transpose(weight_, outputs_, inputs_, packed_weight_.data(), Padded(outputs_));
  std::copy(bias_, bias_ + outputs_, packed_bias_.begin());
}

void PackedLayer::Forward(const float* x, int64_t x_row, int64_t rows, float* y) const {
  const int64_t columns = Padded(outputs_);
  Multiply({rows, inputs_, columns, x, x_row, 1, packed_weight_.data(), columns, packed_bias_.data(), 0, y, columns});
}

}  // namespace skein
