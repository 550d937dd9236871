// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/number/philox.h"
#include "policy/policy_spec.h"

namespace skein {

// A direction in the space of a policy's parameters: a standard normal vector that is a function of these three
// numbers, so that it is neither sent nor stored. Actors perturb with it, the learner combines those with good returns.
struct Direction {
  uint64_t seed = 0;       // Of the run.
  uint64_t iteration = 0;  // Learner iterations finished before; under 2^32.
  uint64_t index = 0;      // In [0, num_dirs).

  // Its elements one by one, in the order of PolicyParameters, row-major.
  RandomStream Noise() const { return {seed, RandomPurpose::kDirection, iteration, index}; }
};

// The indices in PolicyParameters(spec) of the parameters that a direction moves, ascending: all weights and biases,
// but only the weight of a policy without hidden layers, as actions are linear in observations then. Never log_std,
// because a perturbed policy acts without noise of its own.
std::vector<size_t> SearchedParameters(const PolicySpec& spec);

// parameters += scale * direction. `parameters`: as PolicyParameters(spec), of which those of `searched` are moved.
void MoveAlong(const Direction& direction, double scale, absl::Span<const size_t> searched,
               absl::Span<std::vector<float>> parameters);

}  // namespace skein
