// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "policy/simd.h"

// Exponential functions of vectors (simd.h), for loops that apply them to more than one array. In place, element-wise;
// NaN stays NaN.
namespace skein {

// exp(x), up to a relative error of about 1e-7. Below -87 and above 88 the result is that of the bound.
template <typename V>
SKEIN_INLINE void VectorExp(V& x) {
  using Bits = decltype(x < x);            // Integers of the same size.
  constexpr float kLow = -87, kHigh = 88;  // Beyond, the result is as good as 0 or infinite.
  x = x < kLow ? V{} + kLow : x;
  x = x > kHigh ? V{} + kHigh : x;
  // x = n ln 2 + r. Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
  constexpr float kRound = 12582912.0f;
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const V shifted = x * kLog2E + kRound;
  const V n = shifted - kRound;
  const V r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor's series to r^7: |r| <= ln 2 / 2 leaves 5e-9.
  V p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // Times 2^n, made of its exponent; the shift drops what kRound has above.
  Bits bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  V power;
  std::memcpy(&power, &bits, sizeof(power));
  x = p * power;
}

// tanh(x), up to an absolute error of about 1e-7.
template <typename V>
SKEIN_INLINE void VectorTanh(V& x) {
  x += x;
  VectorExp(x);
  x = 1.0f - 2.0f / (x + 1.0f);
}

// 1 / (1 + exp(-x)), up to an absolute error of about 1e-7.
template <typename V>
SKEIN_INLINE void VectorSigmoid(V& x) {
  x = -x;
  VectorExp(x);
  x = 1.0f / (1.0f + x);
}

}  // namespace skein
