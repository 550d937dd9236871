// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "policy/activation.h"

// Matrix products and activations for networks of a few dozen units, where a library call would cost as much as its
// arithmetic. Single-threaded, float32, row-major. Reentrant.
namespace skein {

// Rows are padded with zeros to a multiple of this many floats, so that no loop has a remainder.
constexpr int64_t kPadding = 16;
constexpr int64_t Padded(int64_t size) { return (size + kPadding - 1) / kPadding * kPadding; }

// out[i][j] = init[i][j] + sum_k a[i][k] b[k][j] for i < rows, k < inner, j < columns. Strides count floats.
// REQUIRES: columns is a multiple of kPadding. init may be out; nothing else overlaps it.
struct MatrixProduct {
  int64_t rows, inner, columns;
  const float* a;
  int64_t a_row, a_column;  // Strides; both may be 0.
  const float* b;
  int64_t b_row;
  const float* init;  // Null: zeros.
  int64_t init_row;   // 0: the same row for all.
  float* out;
  int64_t out_row;
};
void Multiply(const MatrixProduct& product);

// out[i][j] = (in[i][j] - mean[j]) * scale[j], within +-limit; NaN stays NaN. in and out [rows, columns] without gaps.
void ScaleAndClip(const float* in, int64_t rows, int64_t columns, const float* mean, const float* scale, float limit,
                  float* out);

// out[j][i] = in[i][j]: in [rows, columns] without gaps, rows of out out_row floats apart.
void Transpose(const float* in, int64_t rows, int64_t columns, float* out, int64_t out_row);

// to[i] += from[i].
void AddTo(int64_t size, const float* from, float* to);

// x[i] = f(x[i]), up to an absolute error of about 1e-7; NaN stays NaN. REQUIRES: size is a multiple of kPadding.
void Activate(ActivationKind kind, float* x, int64_t size);
// x[i] = 1 / (1 + exp(-x[i])), with the accuracy of Activate. REQUIRES: size is a multiple of kPadding.
void Sigmoid(float* x, int64_t size);
// delta[i] *= f'(x[i]), computed from y[i] = f(x[i]). REQUIRES: size is a multiple of kPadding.
void ActivateBackward(ActivationKind kind, const float* y, float* delta, int64_t size);

}  // namespace skein
