// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "learner/algorithm/watch_rule.h"
#include "policy/policy_spec.h"

namespace skein {

// Rules about `explained_variance` and `entropy`, for algorithms that have these statistics: the value function's part
// of the returns' variance, and the policy's mean entropy in nats. docs/tuning.md explains the limits. Pure.
std::vector<WatchRule> ActorCriticRules(const PolicySpec& policy);

}  // namespace skein
