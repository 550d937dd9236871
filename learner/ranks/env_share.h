// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace skein {

// A contiguous part of the run's environments. Environments keep their run-wide indices, so their trajectories do not
// depend on the rank that collects them.
struct EnvShare {
  uint32_t first_env = 0;
  uint32_t share_envs = 0;
};

// The environments of learner rank `rank` of `ranks`: whole groups of `envs_per_group`, in order of rank. The ranks'
// numbers of groups differ by at most one.
// InvalidArgument: there is no such rank; there are fewer groups than ranks (the message says what would fit); or
// num_envs is not a multiple of envs_per_group.
absl::StatusOr<EnvShare> ShareOfRank(uint32_t num_envs, uint32_t envs_per_group, uint32_t rank, uint32_t ranks);

}  // namespace skein
