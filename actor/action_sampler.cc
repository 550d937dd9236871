// SPDX-License-Identifier: Apache-2.0
#include "actor/action_sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"

namespace skein {
namespace {

constexpr double kLogTwoPi = 1.8378770664093453;

// The stream of environment e's noise at its current step; a step draws at most `words` 32-bit numbers.
RandomStream NoiseStream(uint64_t seed, const VectorEnv& env, int e, uint32_t words) {
  return RandomStream(seed, RandomPurpose::kAction, env.env_index(e), env.episode(e), env.step(e) * ((words + 3) / 4));
}

}  // namespace

void SampleGaussian(uint64_t seed, const VectorEnv& env, const float* mean, const float* log_std, float* action,
                    float* log_prob) {
  const int A = env.spec().num_agents, D = env.spec().action_size;
  double log_normalizer = 0.5 * D * kLogTwoPi;
  std::vector<double> std(D);
  for (int d = 0; d < D; ++d) {
    std[d] = std::exp(static_cast<double>(log_std[d]));
    log_normalizer += log_std[d];
  }
  // A pair of normals takes four words.
  const uint32_t words = 4 * static_cast<uint32_t>((A * D + 1) / 2);
  for (int e = 0; e < env.num_envs(); ++e) {
    RandomStream noise = NoiseStream(seed, env, e, words);
    for (int a = 0; a < A; ++a) {
      double squares = 0;
      for (int d = 0; d < D; ++d, ++mean, ++action) {
        const double z = noise.Normal();
        *action = static_cast<float>(*mean + std[d] * z);
        squares += z * z;
      }
      *log_prob++ = static_cast<float>(-0.5 * squares - log_normalizer);
    }
  }
}

void SampleCategorical(uint64_t seed, const VectorEnv& env, const float* logits, int64_t* choice, float* log_prob) {
  const int A = env.spec().num_agents, C = env.spec().action_size;
  const uint32_t words = 2 * static_cast<uint32_t>(A);
  for (int e = 0; e < env.num_envs(); ++e) {
    RandomStream noise = NoiseStream(seed, env, e, words);
    for (int a = 0; a < A; ++a, logits += C) {
      const double top = *std::max_element(logits, logits + C);
      double total = 0;
      for (int c = 0; c < C; ++c) total += std::exp(logits[c] - top);
      // Inverse of the cumulative distribution; rounding at the end goes to the last choice.
      double left = noise.Uniform() * total;
      int picked = 0;
      while (picked < C - 1 && (left -= std::exp(logits[picked] - top)) >= 0) ++picked;
      *choice++ = picked;
      *log_prob++ = static_cast<float>(logits[picked] - top - std::log(total));
    }
  }
}

}  // namespace skein
