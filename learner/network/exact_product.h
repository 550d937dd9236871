// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

// Products of matrices whose bits depend on the numbers only: neither on the device and its library, nor on threads,
// nor on what else is in the batch.   float32 -> ExactRows -> MultiplyExactly -> float64
// Each row is rounded to whole numbers of at most ExactBits bits times a power of two of its own. Sums of products of
// such numbers stay within 2^53, so that a double has them without rounding, in whatever order they are added.
// docs/decisions/exact-products.md. Torch's exceptions are not caught.
namespace skein {

// A batch of matrices with K columns.
struct ExactRows {
  torch::Tensor whole;  // float64 [B, R, K], whole numbers.
  torch::Tensor unit;   // float64 [B, R, 1], powers of two: row r is whole[r] * unit[r].
};

// Bits of a number in a product whose sums have `inner` terms: 24 (a float32 as it is) up to 32 terms, 20 up to 8192.
int64_t ExactBits(int64_t inner);

// matrix: float32 [B, R, K]. A row with a number that is not finite makes products that are not finite.
ExactRows MakeExactRows(const torch::Tensor& matrix);

// a [B, R, K], b [B, N, K] -> a times b transposed, float64 [B, R, N].
torch::Tensor MultiplyExactly(const ExactRows& a, const ExactRows& b);

}  // namespace skein
