// SPDX-License-Identifier: Apache-2.0
#include "learner/network/exact_product.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

namespace skein {
namespace {

constexpr int64_t kMantissa = 53;  // Bits of a double's mantissa,
constexpr int64_t kFraction = 52;  // of which so many are stored,
constexpr int64_t kExponentBias = 1023;
constexpr int64_t kLeastExponent = -126;  // Of a float32 that is not denormal.
constexpr int64_t kFloatBits = 24;

// 2^exponent for int64 exponents that a double has.
torch::Tensor PowerOfTwo(const torch::Tensor& exponent) {
  return (exponent + kExponentBias).bitwise_left_shift(kFraction).view(torch::kFloat64);
}

}  // namespace

int64_t ExactBits(int64_t inner) {
  int64_t terms = 0;  // log2 of inner, rounded up.
  while ((int64_t{1} << terms) < inner) ++terms;
  return std::min(kFloatBits, (kMantissa - terms) / 2);
}

ExactRows MakeExactRows(const torch::Tensor& matrix) {
  const torch::NoGradGuard no_grad;
  const int64_t bits = ExactBits(matrix.size(2));
  const torch::Tensor numbers = matrix.to(torch::kFloat64);
  // The exponent e of the largest magnitude m of each row: m < 2^e.
  const torch::Tensor largest = numbers.abs().amax(2, /*keepdim=*/true).contiguous();
  const torch::Tensor exponent =
      (largest.view(torch::kInt64).bitwise_right_shift(kFraction) - (kExponentBias - 1)).clamp_min_(kLeastExponent);
  return {(numbers * PowerOfTwo(bits - exponent)).round_(), PowerOfTwo(exponent - bits)};
}

torch::Tensor MultiplyExactly(const ExactRows& a, const ExactRows& b) {
  const torch::NoGradGuard no_grad;
  return torch::bmm(a.whole, b.whole.transpose(1, 2)).mul_(a.unit).mul_(b.unit.transpose(1, 2));
}

}  // namespace skein
