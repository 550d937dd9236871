// SPDX-License-Identifier: Apache-2.0
#include "env/searchable.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/number/number_bounds.h"

namespace skein {
namespace {

// Where a bound is infinite, environments in other processes give kNumberBound, the largest number of all.
bool IsFixed(float bound) { return std::abs(bound) < kNumberBound; }

}  // namespace

absl::Status CheckSearchable(const EnvSpec& spec, bool on_device) {
  if (spec.num_agents != 1 && !on_device) {
    return absl::InvalidArgumentError(absl::StrCat(
        "env.id: ", spec.id, " has ", spec.num_agents,
        " agents; actors search over directions in environments of one agent, sync.mode on_device in this"));
  }
  if (spec.discrete) return absl::OkStatus();
  for (size_t i = 0; i < static_cast<size_t>(spec.action_size); ++i) {
    const bool bounded = i < spec.action_low.size() && i < spec.action_high.size() && IsFixed(spec.action_low[i]) &&
                         IsFixed(spec.action_high[i]);
    if (bounded) continue;
    return absl::InvalidArgumentError(absl::StrCat("env.id: element ", i, " of the actions of ", spec.id,
                                                   " has no fixed bounds, which a search over directions needs"));
  }
  return absl::OkStatus();
}

}  // namespace skein
