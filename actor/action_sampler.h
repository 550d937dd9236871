// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "env/vector_env.h"

namespace skein {

// Samples actions for one row of a fragment. Noise is keyed by (run seed, env index, episode, step), so that it does
// not depend on which runner steps the environment. All functions also write the log-probabilities of their samples,
// unless log_prob is null.
// Pure except for their outputs.

// mean [E, A, D] -> action [E, A, D] ~ N(mean, exp(log_std)^2), log_prob [E, A].
void SampleGaussian(uint64_t seed, const VectorEnv& env, const float* mean, const float* log_std, float* action,
                    float* log_prob);

// logits [E, A, C] -> choice [E, A] ~ softmax(logits), log_prob [E, A].
void SampleCategorical(uint64_t seed, const VectorEnv& env, const float* logits, int64_t* choice, float* log_prob);

}  // namespace skein
