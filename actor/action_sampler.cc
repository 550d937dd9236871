// SPDX-License-Identifier: Apache-2.0
#include "actor/action_sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "actor/normal_noise.h"
#include "base/number/philox.h"

namespace skein {
namespace {

constexpr double kLogTwoPi = 1.8378770664093453;

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
  // Each pair of normals is a block of the stream.
  const int pairs = (A * D + 1) / 2;
  thread_local NormalNoise noise;
  noise.Begin(seed, RandomPurpose::kAction, pairs);
  for (int e = 0; e < env.size(); ++e) {
    noise.AddStream(static_cast<uint32_t>(env.env_index(e)), static_cast<uint32_t>(env.episode(e)),
                    env.step(e) * static_cast<uint32_t>(pairs));
  }
  noise.Draw();
  for (int e = 0; e < env.size(); ++e) {
    for (int a = 0, i = 0; a < A; ++a) {
      double squares = 0;
      for (int d = 0; d < D; ++d, ++i, ++mean, ++action) {
        const double z = noise.At(e, i / 2, i % 2 != 0);
        *action = static_cast<float>(*mean + std[d] * z);
        squares += z * z;
      }
      if (log_prob != nullptr) *log_prob++ = static_cast<float>(-0.5 * squares - log_normalizer);
    }
  }
}

void SampleCategorical(uint64_t seed, const VectorEnv& env, const float* logits, int64_t* choice, float* log_prob) {
  const int A = env.spec().num_agents, C = env.spec().action_size;
  const uint32_t blocks = (2 * static_cast<uint32_t>(A) + 3) / 4;  // Two words for each agent.
  for (int e = 0; e < env.size(); ++e) {
    RandomStream noise(seed, RandomPurpose::kAction, env.env_index(e), env.episode(e), env.step(e) * blocks);
    for (int a = 0; a < A; ++a, logits += C) {
      const double top = *std::max_element(logits, logits + C);
      double total = 0;
      for (int c = 0; c < C; ++c) total += std::exp(logits[c] - top);
      // Inverse of the cumulative distribution; rounding at the end goes to the last choice.
      double left = noise.Uniform() * total;
      int picked = 0;
      while (picked < C - 1 && (left -= std::exp(logits[picked] - top)) >= 0) ++picked;
      *choice++ = picked;
      if (log_prob != nullptr) *log_prob++ = static_cast<float>(logits[picked] - top - std::log(total));
    }
  }
}

}  // namespace skein
