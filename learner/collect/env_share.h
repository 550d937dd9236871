// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace skein {

// A contiguous part of the run's environments. They keep their run-wide indices, so what they do does not depend on who
// collects it.
struct EnvShare {
  uint32_t first_env = 0;
  uint32_t num_envs = 0;
};

// The environments of learner rank `rank` of `ranks`: whole groups of `envs_per_group`, in order of rank, of which no
// rank has more than one more than another.
// InvalidArgument: there is no such rank, or fewer groups than ranks (with what would fit), or num_envs is no multiple
// of envs_per_group.
absl::StatusOr<EnvShare> ShareOfRank(uint32_t num_envs, uint32_t envs_per_group, uint32_t rank, uint32_t ranks);

}  // namespace skein
