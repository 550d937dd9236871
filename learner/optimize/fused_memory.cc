// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/fused_memory.h"

#include <algorithm>

#include "learner/optimize/memory_kernels.h"

namespace skein {
namespace {

// Rows of one product for the gradient of the weights: few enough to be in the cache still from their steps.
constexpr int64_t kRows = 96;

}  // namespace

FusedMemory::FusedMemory(const MemoryCell& cell, const std::vector<float*>& gradients)
    : weights_(cell), gradients_(gradients), sum_(weights_.gate_row() * weights_.row()) {}

void FusedMemory::MakeRoom(int64_t rows, int64_t count) {
  count_ = count;
  const int64_t width = weights_.width();
  in_.resize(rows * weights_.row());
  gate_.resize(rows * weights_.gate_row());
  output_.resize(rows * width);
  if (!lstm()) return;
  cell_before_.resize(rows * width);
  tanh_cell_.resize(rows * width);
  cell_.resize(count * width);
}

void FusedMemory::PutInput(int64_t row, const float* input) {
  float* const to = in_.data() + row * weights_.row() + weights_.width();
  std::copy_n(input, weights_.inputs(), to);
  to[weights_.inputs()] = 1;
  std::fill(to + weights_.inputs() + 1, in_.data() + (row + 1) * weights_.row(), 0.0f);
}

void FusedMemory::PutState(int64_t row, const float* h, const float* c, int64_t size) {
  const auto put = [&](const float* from, float* to) {
    if (size > 0) std::copy_n(from, size, to);
    std::fill(to + size, to + weights_.width(), 0.0f);
  };
  put(h, in_.data() + row * weights_.row());
  if (lstm()) put(c, cell_before_.data() + row * weights_.width());
}

void FusedMemory::Forward(const float* input, const bool* begins, const float* state, const int64_t* index,
                          int64_t count, int64_t steps) {
  const int64_t width = weights_.width(), size = weights_.size(), state_size = lstm() ? 2 * size : size;
  MakeRoom(steps * count, count);
  steps_ = steps;
  begins_.resize(steps * count);
  delta_.assign(steps * count * width, 0.0f);
  carry_.assign(count * width, 0.0f);
  cell_carry_.assign(count * width, 0.0f);
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t first = t * count;
    for (int64_t s = 0; s < count; ++s) {
      const int64_t row = first + s, at = index[s] * steps + t;
      const bool fresh = begins[at];
      begins_[row] = fresh ? 1 : 0;
      PutInput(row, input + at * weights_.inputs());
      if (fresh) {
        PutState(row, nullptr, nullptr, 0);
      } else if (t == 0) {
        const float* const h = state + index[s] * state_size;
        PutState(row, h, h + size, size);
      } else {
        PutState(row, output_.data() + (row - count) * width, lstm() ? cell_.data() + s * width : nullptr, width);
      }
    }
    Step(first);
  }
}

void FusedMemory::RunColumns(const Run& run, int64_t first, int64_t count) {
  const int64_t width = weights_.width(), size = weights_.size(), state_size = lstm() ? 2 * size : size;
  MakeRoom(count, count);
  for (int64_t t = 0; t < run.steps; ++t) {
    const int64_t at = t * run.columns + first;
    for (int64_t s = 0; s < count; ++s) {
      PutInput(s, run.input + (at + s) * weights_.inputs());
      if (run.begins[at + s]) {
        PutState(s, nullptr, nullptr, 0);
      } else if (t == 0) {
        const float* const h = run.state + (first + s) * state_size;
        PutState(s, h, h + size, size);
      } else {
        PutState(s, output_.data() + s * width, lstm() ? cell_.data() + s * width : nullptr, width);
      }
    }
    Step(0);
    for (int64_t s = 0; s < count; ++s) {
      std::copy_n(output_.data() + s * width, size, run.output + (at + s) * size);
      if (lstm()) std::copy_n(cell_.data() + s * width, size, run.cell + (at + s) * size);
    }
  }
}

void FusedMemory::Step(int64_t first) {
  const int64_t width = weights_.width();
  const float* const in = in_.data() + first * weights_.row();
  float* const gate = gate_.data() + first * weights_.gate_row();
  float* const output = output_.data() + first * width;
  weights_.Sum(in, count_, gate);
  if (lstm()) {
    LstmForward(count_, width, gate, cell_before_.data() + first * width, cell_.data(),
                tanh_cell_.data() + first * width, output);
  } else {
    GruForward(count_, width, gate, in, weights_.row(), output);
  }
}

void FusedMemory::StepBack(int64_t first) {
  const int64_t width = weights_.width();
  float* const gate = gate_.data() + first * weights_.gate_row();
  const float* const delta = delta_.data() + first * width;
  if (lstm()) {
    LstmBackward(count_, width, gate, tanh_cell_.data() + first * width, cell_before_.data() + first * width, delta,
                 carry_.data(), cell_carry_.data());
  } else {
    GruBackward(count_, width, gate, in_.data() + first * weights_.row(), weights_.row(), delta, carry_.data());
  }
  weights_.BackToState(gate, count_, carry_.data());
}

void FusedMemory::Backward() {
  const int64_t width = weights_.width();
  std::fill(sum_.begin(), sum_.end(), 0.0f);
  int64_t end = steps_ * count_;  // Of the rows whose gradient is not in sum_ yet.
  for (int64_t t = steps_; t-- > 0;) {
    const int64_t first = t * count_;
    StepBack(first);
    if (end - first >= kRows || t == 0) {
      weights_.AddOuterProducts(in_.data() + first * weights_.row(), gate_.data() + first * weights_.gate_row(),
                                end - first, sum_.data());
      end = first;
    }
    for (int64_t s = 0; s < count_ && t > 0; ++s) {
      if (begins_[first + s] == 0) continue;
      std::fill_n(carry_.data() + s * width, width, 0.0f);
      std::fill_n(cell_carry_.data() + s * width, width, 0.0f);
    }
  }
  weights_.AddToWeights(sum_.data(), gradients_);
}

}  // namespace skein
