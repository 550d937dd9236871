// SPDX-License-Identifier: Apache-2.0
#include "policy/normalization.h"

#include <cmath>

#include "policy/dense_kernels.h"

namespace skein {

Normalization Normalization::Identity(int64_t size) {
  return {std::vector<float>(static_cast<size_t>(size), 0), std::vector<float>(static_cast<size_t>(size), 1)};
}

Normalization Normalization::From(absl::Span<const double> mean, absl::Span<const double> variance) {
  Normalization normalization;
  normalization.mean.assign(mean.begin(), mean.end());
  for (const double value : variance) {
    normalization.inv_std.push_back(static_cast<float>(1 / std::sqrt(value + kNormalizationEpsilon)));
  }
  return normalization;
}

void Normalization::Apply(const float* obs, int64_t rows, float* out) const {
  ScaleAndClip(obs, rows, static_cast<int64_t>(mean.size()), mean.data(), inv_std.data(), kNormalizationClip, out);
}

}  // namespace skein
