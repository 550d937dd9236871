// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/packed_memory.h"

#include <torch/types.h>

#include <algorithm>

#include "policy/dense_kernels.h"

namespace skein {
namespace {

constexpr int64_t kParts = 4;

}  // namespace

PackedMemory::PackedMemory(const MemoryCell& cell)
    : cell_(cell),
      inputs_(cell.weight_ih.size(1)),
      size_(cell.size()),
      width_(Padded(size_)),
      both_(cell.kind == MemoryKind::kLstm ? 4 : 2),
      weight_(both_ * width_ * (width_ + inputs_)),
      bias_(both_ * width_),
      state_weight_(both_ == kParts ? 0 : width_ * width_),
      state_bias_(both_ == kParts ? 0 : width_),
      input_weight_(both_ == kParts ? 0 : width_ * inputs_),
      input_bias_(both_ == kParts ? 0 : width_),
      weight_hh_(kParts * width_ * width_),
      from_both_(weight_.data(), bias_.data(), width_ + inputs_, both_ * width_),
      from_state_(state_weight_.data(), state_bias_.data(), width_, both_ == kParts ? 0 : width_),
      from_input_(input_weight_.data(), input_bias_.data(), inputs_, both_ == kParts ? 0 : width_) {
  Pack();
}

PackedMemory::Part PackedMemory::PartAt(int64_t number) const {
  if (number < both_) return {number, true, true};
  return {both_, number == both_, number != both_};
}

void PackedMemory::Pack() {
  const float* const ih = cell_.weight_ih.data_ptr<float>();
  const float* const hh = cell_.weight_hh.data_ptr<float>();
  const float* const bias_ih = cell_.bias_ih.data_ptr<float>();
  const float* const bias_hh = cell_.bias_hh.data_ptr<float>();
  for (int64_t number = 0; number < kParts; ++number) {
    const Part part = PartAt(number);
    for (int64_t j = 0; j < size_; ++j) {
      const int64_t unit = part.gate * size_ + j, to = number * width_ + j;
      const float* const of_h = hh + unit * size_;
      const float* const of_x = ih + unit * inputs_;
      if (part.state) std::copy_n(of_h, size_, weight_hh_.data() + to * width_);
      if (part.state && part.input) {
        float* const row = weight_.data() + to * (width_ + inputs_);
        std::copy_n(of_h, size_, row);
        std::copy_n(of_x, inputs_, row + width_);
        bias_[to] = bias_ih[unit] + bias_hh[unit];
      } else if (part.state) {
        std::copy_n(of_h, size_, state_weight_.data() + j * width_);
        state_bias_[j] = bias_hh[unit];
      } else {
        std::copy_n(of_x, inputs_, input_weight_.data() + j * inputs_);
        input_bias_[j] = bias_ih[unit];
      }
    }
  }
  from_both_.Pack();
  from_state_.Pack();
  from_input_.Pack();
}

void PackedMemory::Sum(const float* in, int64_t rows, float* gate) const {
  from_both_.Forward(in, row(), rows, gate, gate_row());
  from_state_.Forward(in, row(), rows, gate + both_ * width_, gate_row());
  from_input_.Forward(in + width_, row(), rows, gate + (both_ + 1) * width_, gate_row());
}

void PackedMemory::BackToState(const float* gate, int64_t rows, float* carry) const {
  const bool adds = cell_.kind == MemoryKind::kGru;
  Multiply({rows, (adds ? 3 : 4) * width_, width_, gate, gate_row(), 1, weight_hh_.data(), width_,
            adds ? carry : nullptr, width_, carry, width_});
}

void PackedMemory::AddOuterProducts(const float* in, const float* gate, int64_t rows, float* sum) const {
  const bool gru = cell_.kind == MemoryKind::kGru;
  Multiply({(gru ? 3 : 4) * width_, rows, row(), gate, 1, gate_row(), in, row(), sum, row(), sum, row()});
  if (!gru) return;
  float* const of_input = sum + 3 * width_ * row() + width_;
  Multiply({width_, rows, row() - width_, gate + 3 * width_, 1, gate_row(), in + width_, row(), of_input, row(),
            of_input, row()});
}

void PackedMemory::AddToWeights(const float* sum, const std::vector<float*>& weights) const {
  for (int64_t number = 0; number < kParts; ++number) {
    const Part part = PartAt(number);
    for (int64_t j = 0; j < size_; ++j) {
      const float* const from = sum + (number * width_ + j) * row();
      const int64_t unit = part.gate * size_ + j;
      if (part.input) {
        AddTo(inputs_, from + width_, weights[0] + unit * inputs_);
        weights[2][unit] += from[width_ + inputs_];
      }
      if (part.state) {
        AddTo(size_, from, weights[1] + unit * size_);
        weights[3][unit] += from[width_ + inputs_];
      }
    }
  }
}

}  // namespace skein
