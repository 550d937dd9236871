// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

// Where the trainings of a sweep run.
struct Places {
  uint32_t slots = 1;
  uint32_t cores = 1;                 // Of each.
  std::vector<std::string> launcher;  // Words before the command of each, empty = none. They end with this process.
};

// `slots`: a number, or auto = one for each core of this machine; in a Slurm job one for each of its tasks. `launcher`:
// words before the command of each training, or none, or auto = srun in a Slurm job. InvalidArgument: no number.
absl::StatusOr<Places> FindPlaces(const std::string& slots, const std::string& launcher);

}  // namespace skein
