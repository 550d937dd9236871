// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "learner/algorithm/watch_rule.h"
#include "policy/policy_spec.h"

namespace skein {

// Rules about `kl` and `clip_fraction`, and those of ActorCriticRules. docs/tuning.md explains the limits. Pure.
std::vector<WatchRule> PpoRules(const PolicySpec& policy);

}  // namespace skein
