// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/adam_kernel.h"

#include <cmath>

#include "policy/simd.h"

namespace skein {
namespace {

struct StepBody {
  template <typename V>
  static SKEIN_INLINE void Run(const AdamStep* step, int64_t size, const float* gradient, float* parameter,
                               float* exp_avg, float* exp_avg_sq) {
    const AdamStep& s = *step;
    const float scale = static_cast<float>(s.gradient_scale), epsilon = static_cast<float>(s.epsilon);
    const float keep1 = static_cast<float>(s.beta1), take1 = static_cast<float>(1 - s.beta1);
    const float keep2 = static_cast<float>(s.beta2), take2 = static_cast<float>(1 - s.beta2);
    const float lr = static_cast<float>(s.lr / s.correction1);
    const float inv_root2 = static_cast<float>(1 / std::sqrt(s.correction2));
    for (int64_t i = 0; i < size; i += kWidth<V>) {
      V g, p, m, v, root;
      Load(gradient + i, g);
      Load(parameter + i, p);
      Load(exp_avg + i, m);
      Load(exp_avg_sq + i, v);
      g *= scale;
      m = keep1 * m + take1 * g;
      v = keep2 * v + take2 * (g * g);
      for (int64_t lane = 0; lane < kWidth<V>; ++lane) root[lane] = std::sqrt(v[lane]);
      p -= lr * m / (root * inv_root2 + epsilon);
      Store(p, parameter + i);
      Store(m, exp_avg + i);
      Store(v, exp_avg_sq + i);
    }
  }
};

struct SquaresBody {
  template <typename V>
  static SKEIN_INLINE void Run(const float* x, int64_t size, double* result) {
    // Four sums for each lane: each has few terms, and additions overlap.
    V sum[4] = {};
    for (int64_t i = 0; i < size; i += 4 * kWidth<V>) {
      for (int64_t part = 0; part < 4; ++part) {
        V in;
        Load(x + i + part * kWidth<V>, in);
        sum[part] += in * in;
      }
    }
    double total = 0;
    for (int64_t part = 0; part < 4; ++part) {
      for (int64_t lane = 0; lane < kWidth<V>; ++lane) total += sum[part][lane];
    }
    *result = total;
  }
};

}  // namespace

void TakeAdamStep(const AdamStep& step, int64_t size, const float* gradient, float* parameter, float* exp_avg,
                  float* exp_avg_sq) {
  RunWidest<StepBody>(&step, size, gradient, parameter, exp_avg, exp_avg_sq);
}

double SumOfSquares(const float* x, int64_t size) {
  double result;
  RunWidest<SquaresBody>(x, size, &result);
  return result;
}

}  // namespace skein
