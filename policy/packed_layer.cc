// SPDX-License-Identifier: Apache-2.0
#include "policy/packed_layer.h"

#include <algorithm>

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
  for (int64_t first = 0; first < outputs_; first += kPanel) {
    Transpose(weight_ + first * inputs_, std::min(kPanel, outputs_ - first), inputs_,
              packed_weight_.data() + first * inputs_, PanelWidth(first));
  }
  std::copy(bias_, bias_ + outputs_, packed_bias_.begin());
}

void PackedLayer::Forward(const float* x, int64_t x_row, int64_t rows, float* y, int64_t y_row) const {
  const int64_t columns = Padded(outputs_);
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t width = PanelWidth(first);
    Multiply({rows, inputs_, width, x, x_row, 1, packed_weight_.data() + first * inputs_, width,
              packed_bias_.data() + first, 0, y + first, y_row});
  }
}

}  // namespace skein
