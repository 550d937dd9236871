// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Bounds of the numbers in a trajectory. Environments and actors observe them; learners reject fragments that do not.
namespace skein {

// The largest magnitude of an observation, a number of the global state, a reward, a real action or a log-probability.
// Networks learn from numbers of about one. Running statistics add squares, so that one number of 1e25 would dominate
// them for the rest of a run. With this bound, squares and sums of any iteration also stay far within a float's
// range.
inline constexpr float kNumberBound = 1e6f;
// The bound of an episode's return and metrics, which may be sums over its steps: kNumberBound times a million steps.
inline constexpr float kEpisodeBound = 1e12f;

// The index of the first of `count` values that is NaN or larger in magnitude than `bound`; `count` if none is.
// REQUIRES: bound is finite and >= 0.
inline size_t FindBeyond(const float* values, size_t count, float bound) {
  // Without the sign bit, floats are ordered as their bits, with NaN above all others. The vector loop has no branches
  // and only finds whether there is such a value; the scalar loop then finds its index.
  using Words = int32_t __attribute__((vector_size(16)));
  constexpr int32_t kMagnitude = 0x7fffffff;
  constexpr size_t kLanes = sizeof(Words) / sizeof(int32_t);
  int32_t most;
  std::memcpy(&most, &bound, sizeof(most));
  Words found = {};
  const size_t whole = count - count % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    Words words;
    std::memcpy(&words, values + i, sizeof(words));
    found |= (words & kMagnitude) > most;
  }
  int32_t any = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) any |= found[lane];
  size_t i = any != 0 ? 0 : whole;
  while (i < count && std::fabs(values[i]) <= bound) ++i;
  return i;
}

}  // namespace skein
