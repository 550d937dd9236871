// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/fused_memory.h"

#include <torch/types.h>

#include <algorithm>

#include "policy/dense_kernels.h"
#include "policy/simd.h"

namespace skein {
namespace {

constexpr float kOne = 1;

// Loops over the units of one row. Compiled for each instruction set; the compiler makes vectors of them.
struct GruForward {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t width, const float* gate, const float* before, float* output) {
    const float *const z = gate + width, *const n = gate + 2 * width;
    for (int64_t j = 0; j < width; ++j) output[j] = (1 - z[j]) * n[j] + z[j] * before[j];
  }
};

// gate: r, z, n, replaced by the derivatives of their sums. extra: W_hn h + b_hn, replaced by its derivative.
struct GruBackward {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t width, float* gate, float* extra, const float* before, const float* delta,
                               float* carry) {
    float *const r = gate, *const z = gate + width, *const n = gate + 2 * width;
    for (int64_t j = 0; j < width; ++j) {
      const float dh = delta[j], rj = r[j], zj = z[j], nj = n[j];
      const float dn = dh * (1 - zj) * (1 - nj * nj);
      z[j] = dh * (before[j] - nj) * zj * (1 - zj);
      r[j] = dn * extra[j] * rj * (1 - rj);
      n[j] = dn;
      extra[j] = dn * rj;
      carry[j] = dh * zj;
    }
  }
};

// Writes c; output is multiplied by o later.
struct LstmForward {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t width, const float* gate, const float* before, float* c, float* tanh_c) {
    const float *const i = gate, *const f = gate + width, *const g = gate + 2 * width;
    for (int64_t j = 0; j < width; ++j) tanh_c[j] = c[j] = f[j] * before[j] + i[j] * g[j];
  }
};

// gate: i, f, g, o, replaced by the derivatives of their sums. cell_carry: d(loss)/d(c) from later steps, replaced by
// that of c before this one.
struct LstmBackward {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t width, float* gate, const float* tanh_c, const float* before, const float* delta,
                               float* cell_carry) {
    float *const i = gate, *const f = gate + width, *const g = gate + 2 * width, *const o = gate + 3 * width;
    for (int64_t j = 0; j < width; ++j) {
      const float dh = delta[j], t = tanh_c[j], ij = i[j], fj = f[j], gj = g[j], oj = o[j];
      const float dc = cell_carry[j] + dh * oj * (1 - t * t);
      i[j] = dc * gj * ij * (1 - ij);
      f[j] = dc * before[j] * fj * (1 - fj);
      g[j] = dc * ij * (1 - gj * gj);
      o[j] = dh * t * oj * (1 - oj);
      cell_carry[j] = dc * fj;
    }
  }
};

struct AddRows {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t size, const float* from, float* to) {
    for (int64_t j = 0; j < size; ++j) to[j] += from[j];
  }
};
struct MultiplyRows {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t size, const float* a, const float* b, float* to) {
    for (int64_t j = 0; j < size; ++j) to[j] = a[j] * b[j];
  }
};

}  // namespace

FusedMemory::FusedMemory(const MemoryCell& cell, const std::vector<float*>& gradients)
    : cell_(cell),
      gradients_(gradients),
      inputs_(cell.weight_ih.size(1)),
      size_(cell.size()),
      width_(Padded(size_)),
      gates_(cell.kind == MemoryKind::kGru ? 3 : 4),
      weight_ih_(gates_ * width_ * inputs_),
      bias_ih_(gates_ * width_),
      bias_hh_(gates_ * width_),
      weight_hh_(gates_ * width_ * width_),
      from_state_weight_(gates_ * width_ * size_),
      from_input_(weight_ih_.data(), bias_ih_.data(), inputs_, gates_ * width_),
      from_state_(from_state_weight_.data(), bias_hh_.data(), size_, gates_ * width_),
      grad_block_(width_ * std::max(Padded(inputs_), width_)) {}

void FusedMemory::Pack() {
  const float* const ih = cell_.weight_ih.data_ptr<float>();
  const float* const hh = cell_.weight_hh.data_ptr<float>();
  for (int64_t gate = 0; gate < gates_; ++gate) {
    const int64_t from = gate * size_, to = gate * width_;
    std::copy_n(ih + from * inputs_, size_ * inputs_, weight_ih_.begin() + to * inputs_);
    std::copy_n(hh + from * size_, size_ * size_, from_state_weight_.begin() + to * size_);
    for (int64_t j = 0; j < size_; ++j) {
      std::copy_n(hh + (from + j) * size_, size_, weight_hh_.data() + (to + j) * width_);
    }
    std::copy_n(cell_.bias_ih.data_ptr<float>() + from, size_, bias_ih_.begin() + to);
    std::copy_n(cell_.bias_hh.data_ptr<float>() + from, size_, bias_hh_.begin() + to);
  }
  from_input_.Pack();
  from_state_.Pack();
}

void FusedMemory::Forward(const float* input, const bool* begins, const float* state, const int64_t* index,
                          int64_t count, int64_t steps) {
  steps_ = steps;
  count_ = count;
  const int64_t rows = steps * count, in_row = Padded(inputs_), gate_row = gates_ * width_;
  const bool lstm = cell_.kind == MemoryKind::kLstm;
  const int64_t state_size = cell_.state_size();
  begins_.resize(rows);
  input_.resize(rows * in_row);
  gate_.resize(rows * gate_row);
  sums_.resize(count * gate_row);
  for (AlignedFloats* const all : {&extra_, &before_, &output_, &delta_}) all->resize(rows * width_);
  for (AlignedFloats* const all : {&carry_, &cell_state_, &cell_carry_}) all->resize(count * width_);
  if (lstm) cell_before_.resize(rows * width_);
  std::fill(delta_.begin(), delta_.end(), 0.0f);
  std::fill(cell_carry_.begin(), cell_carry_.end(), 0.0f);
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t t = 0; t < steps; ++t) {
      const float* const from = input + (index[s] * steps + t) * inputs_;
      float* const to = input_.data() + (t * count + s) * in_row;
      std::copy(from, from + inputs_, to);
      std::fill(to + inputs_, to + in_row, 0.0f);
      begins_[t * count + s] = begins[index[s] * steps + t] ? 1 : 0;
    }
    // What is carried into the first step.
    const float* const h = state + index[s] * state_size;
    std::copy(h, h + size_, carry_.data() + s * width_);
    std::fill(carry_.data() + s * width_ + size_, carry_.data() + (s + 1) * width_, 0.0f);
    if (!lstm) continue;
    std::copy(h + size_, h + 2 * size_, cell_state_.data() + s * width_);
    std::fill(cell_state_.data() + s * width_ + size_, cell_state_.data() + (s + 1) * width_, 0.0f);
  }
  from_input_.Forward(input_.data(), in_row, rows, gate_.data());
  for (int64_t t = 0; t < steps; ++t) lstm ? StepLstm(t) : StepGru(t);
}

void FusedMemory::StepGru(int64_t t) {
  const int64_t first = t * count_, gate_row = gates_ * width_;
  float* const before = before_.data() + first * width_;
  std::copy_n(t == 0 ? carry_.data() : output_.data() + (first - count_) * width_, count_ * width_, before);
  for (int64_t s = 0; s < count_; ++s) {
    if (begins_[first + s] != 0) std::fill_n(before + s * width_, width_, 0.0f);
  }
  from_state_.Forward(before, width_, count_, sums_.data());
  for (int64_t s = 0; s < count_; ++s) {
    float* const gate = gate_.data() + (first + s) * gate_row;
    const float* const sum = sums_.data() + s * gate_row;
    float* const n = gate + 2 * width_;
    float* const extra = extra_.data() + (first + s) * width_;
    RunWidest<AddRows>(2 * width_, sum, gate);
    Sigmoid(gate, 2 * width_);
    std::copy_n(sum + 2 * width_, width_, extra);
    float* const out = output_.data() + (first + s) * width_;
    RunWidest<MultiplyRows>(width_, gate, extra, out);
    RunWidest<AddRows>(width_, out, n);
    Activate(ActivationKind::kTanh, n, width_);
    RunWidest<GruForward>(width_, gate, before + s * width_, out);
  }
}

void FusedMemory::StepLstm(int64_t t) {
  const int64_t first = t * count_, gate_row = gates_ * width_;
  float* const before = before_.data() + first * width_;
  float* const cell_before = cell_before_.data() + first * width_;
  std::copy_n(t == 0 ? carry_.data() : output_.data() + (first - count_) * width_, count_ * width_, before);
  std::copy_n(cell_state_.data(), count_ * width_, cell_before);
  for (int64_t s = 0; s < count_; ++s) {
    if (begins_[first + s] == 0) continue;
    std::fill_n(before + s * width_, width_, 0.0f);
    std::fill_n(cell_before + s * width_, width_, 0.0f);
  }
  from_state_.Forward(before, width_, count_, sums_.data());
  for (int64_t s = 0; s < count_; ++s) {
    float* const gate = gate_.data() + (first + s) * gate_row;
    float* const tanh_c = extra_.data() + (first + s) * width_;
    RunWidest<AddRows>(gate_row, sums_.data() + s * gate_row, gate);
    Sigmoid(gate, 2 * width_);
    Activate(ActivationKind::kTanh, gate + 2 * width_, width_);
    Sigmoid(gate + 3 * width_, width_);
    RunWidest<LstmForward>(width_, gate, cell_before + s * width_, cell_state_.data() + s * width_, tanh_c);
    Activate(ActivationKind::kTanh, tanh_c, width_);
    RunWidest<MultiplyRows>(width_, gate + 3 * width_, tanh_c, output_.data() + (first + s) * width_);
  }
}

void FusedMemory::StepBackGru(int64_t t) {
  const int64_t first = t * count_, gate_row = gates_ * width_;
  for (int64_t s = 0; s < count_; ++s) {
    const int64_t row = first + s;
    RunWidest<GruBackward>(width_, gate_.data() + row * gate_row, extra_.data() + row * width_,
                           before_.data() + row * width_, delta_.data() + row * width_, carry_.data() + s * width_);
  }
  // Through r and z, then through n.
  Multiply({count_, 2 * width_, width_, gate_.data() + first * gate_row, gate_row, 1, weight_hh_.data(), width_,
            carry_.data(), width_, carry_.data(), width_});
  Multiply({count_, width_, width_, extra_.data() + first * width_, width_, 1, weight_hh_.data() + 2 * width_ * width_,
            width_, carry_.data(), width_, carry_.data(), width_});
}

void FusedMemory::StepBackLstm(int64_t t) {
  const int64_t first = t * count_, gate_row = gates_ * width_;
  for (int64_t s = 0; s < count_; ++s) {
    const int64_t row = first + s;
    RunWidest<LstmBackward>(width_, gate_.data() + row * gate_row, extra_.data() + row * width_,
                            cell_before_.data() + row * width_, delta_.data() + row * width_,
                            cell_carry_.data() + s * width_);
  }
  Multiply({count_, gate_row, width_, gate_.data() + first * gate_row, gate_row, 1, weight_hh_.data(), width_, nullptr,
            0, carry_.data(), width_});
}

void FusedMemory::Backward() {
  const bool lstm = cell_.kind == MemoryKind::kLstm;
  for (int64_t t = steps_; t-- > 0;) {
    lstm ? StepBackLstm(t) : StepBackGru(t);
    if (t == 0) break;
    for (int64_t s = 0; s < count_; ++s) {
      if (begins_[t * count_ + s] != 0) {
        std::fill_n(cell_carry_.data() + s * width_, width_, 0.0f);
      } else {
        RunWidest<AddRows>(width_, carry_.data() + s * width_, delta_.data() + ((t - 1) * count_ + s) * width_);
      }
    }
  }
  const int64_t gate_row = gates_ * width_;
  AddWeightGradient(gate_.data(), gate_row, 0, gates_, input_.data(), Padded(inputs_), inputs_, gradients_[0],
                    gradients_[2]);
  AddWeightGradient(gate_.data(), gate_row, 0, lstm ? 4 : 2, before_.data(), width_, size_, gradients_[1],
                    gradients_[3]);
  if (!lstm) {
    AddWeightGradient(extra_.data(), width_, 2, 1, before_.data(), width_, size_, gradients_[1], gradients_[3]);
  }
}

void FusedMemory::AddWeightGradient(const float* gates, int64_t gate_row, int64_t first, int64_t count, const float* in,
                                    int64_t in_row, int64_t inputs, float* weight, float* bias) {
  const int64_t rows = steps_ * count_;
  for (int64_t gate = 0; gate < count; ++gate) {
    const float* const delta = gates + gate * width_;
    Multiply({size_, rows, in_row, delta, 1, gate_row, in, in_row, nullptr, 0, grad_block_.data(), in_row});
    const int64_t unit = (first + gate) * size_;
    for (int64_t j = 0; j < size_; ++j) {
      const float* const from = grad_block_.data() + j * in_row;
      float* const to = weight + (unit + j) * inputs;
      for (int64_t k = 0; k < inputs; ++k) to[k] += from[k];
    }
    Multiply({1, rows, width_, &kOne, 0, 0, delta, gate_row, nullptr, 0, grad_block_.data(), width_});
    for (int64_t j = 0; j < size_; ++j) bias[unit + j] += grad_block_.data()[j];
  }
}

}  // namespace skein
