// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// How large the numbers of a trajectory may be: environments and actors keep to it, learners refuse what does not.
namespace skein {

// The largest magnitude of an observation, a number of the global state, a reward, a real action or a log-probability.
// Networks learn from numbers of about one. Running statistics take in squares, so that one number of 1e25 would
// outweigh all others for the rest of a run; with this bound the squares and sums of any iteration stay far within a
// float, too.
inline constexpr float kNumberBound = 1e6f;
// Of an episode's return and metrics, which may be sums over its steps: those of a million steps.
inline constexpr float kEpisodeBound = 1e12f;

// The first of `count` values that is NaN or larger in magnitude than `bound`; `count` if none is.
// REQUIRES: bound is finite and >= 0.
inline size_t FindBeyond(const float* values, size_t count, float bound) {
  // Without their signs, floats are ordered as their bits are, NaN above all. Several at a time and without branches;
  // where, is only looked for if any is.
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
