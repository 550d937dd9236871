// SPDX-License-Identifier: Apache-2.0
#include "policy/recurrent.h"

#include <algorithm>
#include <utility>

#include "policy/dense_kernels.h"

namespace skein {
namespace {

int64_t Gates(const PolicySpec& spec) { return spec.memory == MemoryKind::kGru ? 3 : 4; }

// One row. x, h: the gates' sums of the input and of the state, Padded(size) each; x is overwritten.
void StepGru(int64_t size, float* x, const float* h, const float* state, float* next_state) {
  const int64_t width = Padded(size);
  for (int64_t j = 0; j < 2 * width; ++j) x[j] += h[j];
  Sigmoid(x, 2 * width);
  const float *const r = x, *const z = x + width;
  float* const n = x + 2 * width;
  for (int64_t j = 0; j < width; ++j) n[j] += r[j] * h[2 * width + j];
  Activate(ActivationKind::kTanh, n, width);
  for (int64_t j = 0; j < size; ++j) next_state[j] = (1 - z[j]) * n[j] + z[j] * state[j];
}

void StepLstm(int64_t size, float* x, const float* h, const float* state, float* next_state) {
  const int64_t width = Padded(size);
  for (int64_t j = 0; j < 4 * width; ++j) x[j] += h[j];
  float *const i = x, *const f = x + width, *const g = x + 2 * width, *const o = x + 3 * width;
  Sigmoid(i, 2 * width);
  Activate(ActivationKind::kTanh, g, width);
  Sigmoid(o, width);
  float* const next_c = next_state + size;
  for (int64_t j = 0; j < size; ++j) {
    next_c[j] = f[j] * state[size + j] + i[j] * g[j];
    g[j] = next_c[j];
  }
  Activate(ActivationKind::kTanh, g, width);
  for (int64_t j = 0; j < size; ++j) next_state[j] = o[j] * g[j];
}

}  // namespace

PackedLayer Recurrent::PackGates(int64_t gates, int64_t inputs, int64_t size, const std::vector<float>& weight,
                                 const std::vector<float>& bias) {
  const int64_t width = Padded(size);
  std::vector<float> padded_weight(static_cast<size_t>(gates * width * inputs));
  std::vector<float> padded_bias(static_cast<size_t>(gates * width));
  for (int64_t gate = 0; gate < gates; ++gate) {
    std::copy_n(weight.begin() + gate * size * inputs, size * inputs, padded_weight.begin() + gate * width * inputs);
    std::copy_n(bias.begin() + gate * size, size, padded_bias.begin() + gate * width);
  }
  return {padded_weight.data(), padded_bias.data(), inputs, gates * width};
}

Recurrent::Recurrent(uint64_t version, const PolicySpec& spec, absl::Span<const std::vector<float>> cell,
                     absl::Span<const std::vector<float>> layers, std::vector<float> log_std,
                     Normalization normalization)
    : Policy(version, spec, std::move(log_std), std::move(normalization)),
      from_input_(PackGates(Gates(spec), spec.obs_size, spec.memory_size, cell[0], cell[2])),
      from_state_(PackGates(Gates(spec), spec.memory_size, spec.memory_size, cell[1], cell[3])),
      layers_(spec, layers) {}

void Recurrent::Act(const float* obs, const float* state, int64_t rows, float* head, float* next_state) const {
  thread_local AlignedFloats input, input_gates, state_gates;
  const int64_t size = spec().memory_size, width = Gates(spec()) * Padded(size), stride = spec().state_size();
  MakeRoom(rows * spec().obs_size, &input);
  MakeRoom(rows * width, &input_gates);
  MakeRoom(rows * width, &state_gates);
  normalization().Apply(obs, rows, input.data());
  from_input_.Forward(input.data(), spec().obs_size, rows, input_gates.data());
  from_state_.Forward(state, stride, rows, state_gates.data());
  const auto step = spec().memory == MemoryKind::kGru ? StepGru : StepLstm;
  for (int64_t row = 0; row < rows; ++row) {
    step(size, input_gates.data() + row * width, state_gates.data() + row * width, state + row * stride,
         next_state + row * stride);
  }
  layers_.Forward(next_state, stride, rows, head);
}

}  // namespace skein
