// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// FlatAdam's loops for the CPU.
namespace skein {

// Array sizes are multiples of this, so that the loops have no remainder.
constexpr int64_t kAdamPadding = 64;

// One step of Adam (Kingma & Ba 2015, algorithm 1).
struct AdamStep {
  double gradient_scale;
  double beta1, beta2;
  double correction1, correction2;  // 1 - beta1^t, 1 - beta2^t
  double epsilon, lr;
};

// REQUIRES: size is a multiple of kAdamPadding; the arrays do not overlap.
void TakeAdamStep(const AdamStep& step, int64_t size, const float* gradient, float* parameter, float* exp_avg,
                  float* exp_avg_sq);
// Sum of x[i]^2. REQUIRES: size is a multiple of kAdamPadding.
double SumOfSquares(const float* x, int64_t size);

}  // namespace skein
