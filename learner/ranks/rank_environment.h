// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

// The rank of this learner process, from its launcher.   environment variables -> RankEnvironment
namespace skein {

// 0 <= rank < size, 0 <= local_rank < size.
struct RankEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // Among the ranks of this node.
};

// The value of a variable; nullopt: not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Reads RANK, WORLD_SIZE and LOCAL_RANK (torchrun), else SLURM_PROCID, SLURM_STEP_NUM_TASKS and SLURM_LOCALID (srun),
// else assumes a single rank. With Slurm the size is the number of tasks of the *step*: SLURM_NTASKS is also set, with
// SLURM_PROCID 0, in the script that sbatch runs once for any number of tasks and in salloc's shell; there
// SLURM_STEP_NUM_TASKS is absent or 1. InvalidArgument names the variable and its value: a variable of the set is
// missing or not a number, or a rank is not below the size.
absl::StatusOr<RankEnvironment> ReadRankEnvironment(const EnvironmentLookup& lookup);
// From this process's variables.
absl::StatusOr<RankEnvironment> ReadRankEnvironment();

}  // namespace skein
