// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "env/env.h"
#include "launch/launch_plan.h"
#include "skein/v1/config.pb.h"

// Rules for launch plans of searches over directions, beyond base/config/direction_rules.h. Pure functions. REQUIRES:
// the configuration's algorithm is a search, and defaults are applied.
namespace skein {

// InvalidArgument: a search cannot be in this environment, or its episodes would have no end.
absl::Status CheckSearch(const v1::RunConfig& config, const EnvSpec& spec);

// InvalidArgument: more than one learner.
absl::Status CheckLearners(const v1::RunConfig& config, uint32_t learners);

// InvalidArgument: --envs or --envs-per-runner contradicts the sizes that follow from the directions of `config`, which
// was read without the two flags.
absl::Status CheckSizeFlags(const LaunchOptions& options, const v1::RunConfig& config);

}  // namespace skein
