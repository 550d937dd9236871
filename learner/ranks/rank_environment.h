// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

// Which of a learner's ranks this process is, as its launcher says.   environment variables -> RankEnvironment
namespace skein {

// 0 <= rank < size, 0 <= local_rank < size.
struct RankEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // Among the ranks of this node.
};

// The value of a variable; nullopt: not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// RANK, WORLD_SIZE and LOCAL_RANK (torchrun), else SLURM_PROCID, SLURM_STEP_NUM_TASKS and SLURM_LOCALID (srun), else a
// single rank. Slurm counts ranks by the tasks of the *step*: SLURM_NTASKS, with a SLURM_PROCID of 0, also stands in
// the script that sbatch runs once, for however many tasks, and in the shell of salloc; there SLURM_STEP_NUM_TASKS is
// absent or 1. InvalidArgument names the variable and its value: a part of a set is missing; not a number; rank beyond
// the size.
absl::StatusOr<RankEnvironment> ReadRankEnvironment(const EnvironmentLookup& lookup);
// From this process's variables.
absl::StatusOr<RankEnvironment> ReadRankEnvironment();

}  // namespace skein
