// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The element-wise part of a step of a GRU or LSTM, from the sums of its gates on, and its derivative, over rows of
// `width` units (policy/recurrent.h has the formulas). float32, vectorised; a row's result does not depend on the
// others, to the bit. Rows are `width` floats apart, those of `gate` 4 width, and those of `before` of a GRU
// before_row. Exponential functions are those of policy/vector_exp.h: absolute errors of about 1e-7. Reentrant.
// REQUIRES: `width` is a multiple of kPadding; arrays do not overlap.
namespace skein {

// gate: the sums of r, z, of W_hn h + b_hn and of W_in x + b_in; replaced by r, z, the third as it is, and n.
// before: h. output: h'.
void GruForward(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row, float* output);
// gate: replaced by the derivatives by the four sums. d(loss)/d(h') is delta + carry; carry is replaced by the part of
// d(loss)/d(h) that does not go through the sums.
void GruBackward(int64_t rows, int64_t width, float* gate, const float* before, int64_t before_row, const float* delta,
                 float* carry);

// gate: the sums of i, f, g, o, replaced by the gates. before: c. cell: c'. tanh_cell: tanh(c'). output: h'.
void LstmForward(int64_t rows, int64_t width, float* gate, const float* before, float* cell, float* tanh_cell,
                 float* output);
// gate: replaced by the derivatives by the sums. d(loss)/d(h') is delta + carry. cell_carry: what later steps give to
// d(loss)/d(c'), replaced by d(loss)/d(c).
void LstmBackward(int64_t rows, int64_t width, float* gate, const float* tanh_cell, const float* before,
                  const float* delta, const float* carry, float* cell_carry);

}  // namespace skein
