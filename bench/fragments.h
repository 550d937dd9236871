// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "learner/collect/fragment_shape.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

// Makes rollout fragments as actors send them, in this process.
namespace skein {

// One fragment for each of the first `groups` env groups, collected by a real runner with the policy of `snapshot`.
absl::StatusOr<std::vector<Fragment>> CollectFragments(const v1::RunConfig& config, const FragmentShape& shape,
                                                       const v1::PolicySnapshot& snapshot, uint32_t groups);

}  // namespace skein
