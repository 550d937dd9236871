// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "trajectory/columns.h"

namespace skein {

// Makes one iteration's batch of the run's shape without an environment: random observations and rewards, actions of
// the policy of `snapshot` with their log-probabilities, and episodes that end at their time limit, at a different step
// for each environment. An update of it costs the same as one of a real batch. Internal: Torch failed.
absl::StatusOr<std::unique_ptr<Columns>> MakeSyntheticBatch(const v1::RunConfig& config, const EnvSpec& spec,
                                                            const v1::PolicySnapshot& snapshot);

}  // namespace skein
