// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/memory_kernels.h"

#include "policy/simd.h"
#include "policy/vector_exp.h"

namespace skein {
namespace {

struct GruForwardBody {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row,
                               float* output) {
    for (; rows > 0; --rows, gate += 4 * width, before += before_row, output += width) {
      for (int64_t j = 0; j < width; j += kWidth<V>) {
        V r, z, s, n, h;
        Load(gate + j, r);
        Load(gate + width + j, z);
        Load(gate + 2 * width + j, s);
        Load(gate + 3 * width + j, n);
        Load(before + j, h);
        VectorSigmoid(r);
        VectorSigmoid(z);
        n += r * s;
        VectorTanh(n);
        h = (1.0f - z) * n + z * h;
        Store(r, gate + j);
        Store(z, gate + width + j);
        Store(n, gate + 3 * width + j);
        Store(h, output + j);
      }
    }
  }
};

struct GruBackwardBody {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row,
                               const float* delta, float* carry) {
    for (; rows > 0; --rows, gate += 4 * width, before += before_row, delta += width, carry += width) {
      for (int64_t j = 0; j < width; j += kWidth<V>) {
        V r, z, s, n, h, dh, later;
        Load(gate + j, r);
        Load(gate + width + j, z);
        Load(gate + 2 * width + j, s);
        Load(gate + 3 * width + j, n);
        Load(before + j, h);
        Load(delta + j, dh);
        Load(carry + j, later);
        dh += later;
        const V dn = dh * (1.0f - z) * (1.0f - n * n);
        Store(dn * s * r * (1.0f - r), gate + j);
        Store(dh * (h - n) * z * (1.0f - z), gate + width + j);
        Store(dn * r, gate + 2 * width + j);
        Store(dn, gate + 3 * width + j);
        Store(dh * z, carry + j);
      }
    }
  }
};

struct LstmForwardBody {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t rows, int64_t width, float* gate, const float* before, float* cell,
                               float* tanh_cell, float* output) {
    for (; rows > 0; --rows, gate += 4 * width, before += width, cell += width, tanh_cell += width, output += width) {
      for (int64_t j = 0; j < width; j += kWidth<V>) {
        V i, f, g, o, c;
        Load(gate + j, i);
        Load(gate + width + j, f);
        Load(gate + 2 * width + j, g);
        Load(gate + 3 * width + j, o);
        Load(before + j, c);
        VectorSigmoid(i);
        VectorSigmoid(f);
        VectorTanh(g);
        VectorSigmoid(o);
        c = f * c + i * g;
        Store(i, gate + j);
        Store(f, gate + width + j);
        Store(g, gate + 2 * width + j);
        Store(o, gate + 3 * width + j);
        Store(c, cell + j);
        VectorTanh(c);
        Store(c, tanh_cell + j);
        Store(o * c, output + j);
      }
    }
  }
};

struct LstmBackwardBody {
  template <typename V>
  static SKEIN_INLINE void Run(int64_t rows, int64_t width, float* gate, const float* tanh_cell, const float* before,
                               const float* delta, const float* carry, float* cell_carry) {
    for (; rows > 0; --rows, gate += 4 * width, tanh_cell += width, before += width, delta += width, carry += width,
                     cell_carry += width) {
      for (int64_t j = 0; j < width; j += kWidth<V>) {
        V i, f, g, o, t, c, dh, later, dc;
        Load(gate + j, i);
        Load(gate + width + j, f);
        Load(gate + 2 * width + j, g);
        Load(gate + 3 * width + j, o);
        Load(tanh_cell + j, t);
        Load(before + j, c);
        Load(delta + j, dh);
        Load(carry + j, later);
        Load(cell_carry + j, dc);
        dh += later;
        dc += dh * o * (1.0f - t * t);
        Store(dc * g * i * (1.0f - i), gate + j);
        Store(dc * c * f * (1.0f - f), gate + width + j);
        Store(dc * i * (1.0f - g * g), gate + 2 * width + j);
        Store(dh * t * o * (1.0f - o), gate + 3 * width + j);
        Store(dc * f, cell_carry + j);
      }
    }
  }
};

}  // namespace

void GruForward(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row, float* output) {
  RunWidest<GruForwardBody>(rows, width, gate, before, before_row, output);
}

void GruBackward(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row, const float* delta,
                 float* carry) {
  RunWidest<GruBackwardBody>(rows, width, gate, before, before_row, delta, carry);
}

void LstmForward(int64_t rows, int64_t width, float* gate, const float* before, float* cell, float* tanh_cell,
                 float* output) {
  RunWidest<LstmForwardBody>(rows, width, gate, before, cell, tanh_cell, output);
}

void LstmBackward(int64_t rows, int64_t width, float* gate, const float* tanh_cell, const float* before,
                  const float* delta, const float* carry, float* cell_carry) {
  RunWidest<LstmBackwardBody>(rows, width, gate, tanh_cell, before, delta, carry, cell_carry);
}

}  // namespace skein
