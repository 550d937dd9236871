// SPDX-License-Identifier: Apache-2.0
#include "policy/dense_kernels.h"

#include <cmath>

#include "policy/simd.h"
#include "policy/vector_exp.h"

namespace skein {
namespace {

// kRows rows by kVectors vectors of the product: its sums stay in registers.
template <typename V, int kRows, int kVectors>
SKEIN_INLINE void MultiplyTile(const MatrixProduct& p, int64_t row, int64_t column) {
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = V{};
      if (p.init != nullptr) Load(p.init + (row + r) * p.init_row + column + v * kWidth<V>, sum[r][v]);
    }
  }
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  for (int64_t k = 0; k < p.inner; ++k, a += p.a_column, b += p.b_row) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) Load(b + v * kWidth<V>, right[v]);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[r][v] += a[r * p.a_row] * right[v];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Store(sum[r][v], p.out + (row + r) * p.out_row + column + v * kWidth<V>);
  }
}

// From `row` on: tiles of kRows rows as long as they fit, then lower ones.
template <typename V, int kRows, int kVectors>
SKEIN_INLINE void MultiplyRows(const MatrixProduct& p, int64_t row, int64_t column) {
  for (; row + kRows <= p.rows; row += kRows) MultiplyTile<V, kRows, kVectors>(p, row, column);
  if constexpr (kRows > 1) MultiplyRows<V, kRows / 2, kVectors>(p, row, column);
}

// As many sums as there are registers for, and enough to hide the latency of an addition.
struct MultiplyBody {
  template <typename V>
  static SKEIN_INLINE void Run(const MatrixProduct* product) {
    const MatrixProduct p = *product;
    int64_t column = 0;
    if constexpr (kWidth<V> == 16) {
      for (; column + 64 <= p.columns; column += 64) MultiplyRows<V, 6, 4>(p, 0, column);
      for (; column + 32 <= p.columns; column += 32) MultiplyRows<V, 8, 2>(p, 0, column);
      for (; column < p.columns; column += 16) MultiplyRows<V, 12, 1>(p, 0, column);
    } else if constexpr (kWidth<V> == 8) {
      for (; column < p.columns; column += 16) MultiplyRows<V, 6, 2>(p, 0, column);
    } else {
      for (; column < p.columns; column += 16) MultiplyRows<V, 2, 4>(p, 0, column);
    }
  }
};

template <ActivationKind kind>
struct ActivateBody {
  template <typename V>
  static SKEIN_INLINE void Run(float* x, int64_t size) {
    for (int64_t i = 0; i < size; i += kWidth<V>) {
      V in;
      Load(x + i, in);
      V out = in;
      if constexpr (kind == ActivationKind::kTanh) {
        VectorTanh(out);
      } else if constexpr (kind == ActivationKind::kElu) {
        VectorExp(out);
        out = in > 0.0f ? in : out - 1.0f;
      } else {
        out = in < 0.0f ? V{} : in;
      }
      Store(out, x + i);
    }
  }
};

struct SigmoidBody {
  template <typename V>
  static SKEIN_INLINE void Run(float* x, int64_t size) {
    for (int64_t i = 0; i < size; i += kWidth<V>) {
      V value;
      Load(x + i, value);
      VectorSigmoid(value);
      Store(value, x + i);
    }
  }
};

template <ActivationKind kind>
struct ActivateBackwardBody {
  template <typename V>
  static SKEIN_INLINE void Run(const float* y, float* delta, int64_t size) {
    for (int64_t i = 0; i < size; i += kWidth<V>) {
      V out, d;
      Load(y + i, out);
      Load(delta + i, d);
      if constexpr (kind == ActivationKind::kTanh) {
        d *= 1.0f - out * out;
      } else if constexpr (kind == ActivationKind::kElu) {
        d = out < 0.0f ? d * (out + 1.0f) : d;
      } else {
        d = out > 0.0f ? d : V{};
      }
      Store(d, delta + i);
    }
  }
};

struct AddToBody {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t size, const float* from, float* to) {
    int64_t i = 0;
    for (; i + kWidth<V> <= size; i += kWidth<V>) {
      V sum, more;
      Load(to + i, sum);
      Load(from + i, more);
      sum += more;
      Store(sum, to + i);
    }
    for (; i < size; ++i) to[i] += from[i];
  }
};

}  // namespace

SimdLevel& ActiveSimdLevel() {
  static SimdLevel level = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return SimdLevel::kAvx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SimdLevel::kAvx2;
#endif
    return SimdLevel::kBase;
  }();
  return level;
}

void Multiply(const MatrixProduct& product) { RunWidest<MultiplyBody>(&product); }

void ScaleAndClip(const float* in, int64_t rows, int64_t columns, const float* mean, const float* scale, float limit,
                  float* out) {
  for (int64_t i = 0; i < rows; ++i, in += columns, out += columns) {
    for (int64_t j = 0; j < columns; ++j) {
      // Comparisons this way round let NaN through.
      float value = (in[j] - mean[j]) * scale[j];
      value = -limit > value ? -limit : value;
      out[j] = limit < value ? limit : value;
    }
  }
}

void Transpose(const float* in, int64_t rows, int64_t columns, float* out, int64_t out_row) {
  // By blocks that stay in the cache both ways.
  constexpr int64_t kBlock = 16;
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t end = i + kBlock < rows ? i + kBlock : rows;
      for (int64_t k = i; k < end; ++k) out[j * out_row + k] = in[k * columns + j];
    }
  }
}

void Activate(ActivationKind kind, float* x, int64_t size) {
  switch (kind) {
    case ActivationKind::kTanh:
      return RunWidest<ActivateBody<ActivationKind::kTanh>>(x, size);
    case ActivationKind::kElu:
      return RunWidest<ActivateBody<ActivationKind::kElu>>(x, size);
    case ActivationKind::kRelu:
      return RunWidest<ActivateBody<ActivationKind::kRelu>>(x, size);
  }
}

void Sigmoid(float* x, int64_t size) { RunWidest<SigmoidBody>(x, size); }

void AddTo(int64_t size, const float* from, float* to) { RunWidest<AddToBody>(size, from, to); }

void ActivateBackward(ActivationKind kind, const float* y, float* delta, int64_t size) {
  switch (kind) {
    case ActivationKind::kTanh:
      return RunWidest<ActivateBackwardBody<ActivationKind::kTanh>>(y, delta, size);
    case ActivationKind::kElu:
      return RunWidest<ActivateBackwardBody<ActivationKind::kElu>>(y, delta, size);
    case ActivationKind::kRelu:
      return RunWidest<ActivateBackwardBody<ActivationKind::kRelu>>(y, delta, size);
  }
}

}  // namespace skein
