// SPDX-License-Identifier: Apache-2.0
#include "policy/direction.h"

namespace skein {

std::vector<size_t> SearchedParameters(const PolicySpec& spec) {
  std::vector<size_t> searched;
  const std::vector<ParameterSpec> parameters = PolicyParameters(spec);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool linear_bias = spec.hidden.empty() && parameters[i].name == "policy.head.bias";
    if (parameters[i].name != "log_std" && !linear_bias) searched.push_back(i);
  }
  return searched;
}

void MoveAlong(const Direction& direction, double scale, absl::Span<const size_t> searched,
               absl::Span<std::vector<float>> parameters) {
  RandomStream noise = direction.Noise();
  for (const size_t i : searched) {
    for (float& value : parameters[i]) value = static_cast<float>(value + scale * noise.Normal());
  }
}

}  // namespace skein
