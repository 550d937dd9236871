// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/number/philox.h"
#include "policy/policy.h"

namespace skein {

// Values for every parameter of that policy, uniform in +-`bound`; the same for equal arguments.
inline std::vector<std::vector<float>> RandomParameters(const PolicySpec& spec, uint64_t seed = 1, double bound = 0.8) {
  std::vector<std::vector<float>> values;
  for (const ParameterSpec& parameter : PolicyParameters(spec)) {
    RandomStream random(seed, RandomPurpose::kInit, values.size(), 0);
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    std::vector<float>& value = values.emplace_back();
    for (int64_t i = 0; i < size; ++i) value.push_back(static_cast<float>(random.Uniform(-bound, bound)));
  }
  return values;
}

// A policy of these parameters that normalises nothing.
inline std::shared_ptr<const Policy> RandomPolicy(uint64_t version, const PolicySpec& spec, uint64_t seed = 1,
                                                  double bound = 0.8) {
  return MakePolicy(version, spec, RandomParameters(spec, seed, bound), Normalization::Identity(spec.obs_size));
}

}  // namespace skein
