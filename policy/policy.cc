// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include "policy/feed_forward.h"
#include "policy/recurrent.h"

namespace skein {

std::shared_ptr<const Policy> MakePolicy(uint64_t version, const PolicySpec& spec,
                                         absl::Span<const std::vector<float>> values, Normalization normalization) {
  constexpr size_t kCellParameters = 4;
  std::vector<float> log_std;
  if (!spec.discrete) log_std = values.back();
  const size_t layer_values = 2 * (spec.hidden.size() + 1);
  if (spec.memory == MemoryKind::kNone) {
    return std::make_shared<const FeedForward>(version, spec, values.first(layer_values), std::move(log_std),
                                               std::move(normalization));
  }
  return std::make_shared<const Recurrent>(version, spec, values.first(kCellParameters),
                                           values.subspan(kCellParameters, layer_values), std::move(log_std),
                                           std::move(normalization));
}

}  // namespace skein
