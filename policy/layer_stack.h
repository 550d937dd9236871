// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "policy/activation.h"
#include "policy/aligned_floats.h"
#include "policy/packed_layer.h"
#include "policy/policy_spec.h"

// The layers of a policy after its memory, packed for acting.
namespace skein {

// Makes room for `size` floats; the old contents may be lost.
inline void MakeRoom(int64_t size, AlignedFloats* floats) {
  if (static_cast<int64_t>(floats->size()) < size) floats->resize(static_cast<size_t>(size));
}

// The hidden layers and the head of a policy.   features -> hidden layers -> head
// Const calls may run in several threads at once.
class LayerStack {
 public:
  // `values`: weight and bias of each layer, head last, as PolicyParameters orders them. They are copied.
  LayerStack(const PolicySpec& spec, absl::Span<const std::vector<float>> values);

  // x: rows of features, x_row floats apart -> head [rows, head_size].
  void Forward(const float* x, int64_t x_row, int64_t rows, float* head) const;

 private:
  const ActivationKind activation_;
  std::vector<PackedLayer> layers_;  // Head last.
};

}  // namespace skein
