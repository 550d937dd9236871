// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

// The normalisation of a policy's observations, as learners and actors compute it: constants and the affine map.
namespace skein {

// Added to a variance before its square root is taken.
inline constexpr double kNormalizationEpsilon = 1e-8;
// Normalised observations are clipped to plus and minus this.
inline constexpr float kNormalizationClip = 10;

// How a policy normalises observations: clip((x - mean) / sqrt(variance + 1e-8), -10, 10), as an affine map.
struct Normalization {
  std::vector<float> mean, inv_std;  // [O]

  static Normalization Identity(int64_t size);
  // From running moments. REQUIRES: equal sizes.
  static Normalization From(absl::Span<const double> mean, absl::Span<const double> variance);
  // obs [rows, O] -> out [rows, O]
  void Apply(const float* obs, int64_t rows, float* out) const;
};

}  // namespace skein
