// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "trajectory/columns.h"

namespace skein {

// One iteration's batch of the run's shape without an environment: random observations and rewards, actions of the
// policy of `snapshot` with their log-probabilities, episodes that end at their time limit, each environment's at a
// step of its own. An update cannot tell it from a real one, and it costs the same. Internal: Torch failed.
absl::StatusOr<std::unique_ptr<Columns>> MakeSyntheticBatch(const v1::RunConfig& config, const EnvSpec& spec,
                                                            const v1::PolicySnapshot& snapshot);

}  // namespace skein
