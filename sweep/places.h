// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/node_bookings.h"

namespace skein {

// Places at which the trainings of a sweep run: slots of this machine or of a Slurm job.
struct Places {
  uint32_t slots = 1;
  uint32_t cores = 1;                 // Of each.
  std::vector<std::string> launcher;  // Words before the command of each, empty = none. They end with this process.
};

// `slots`: a number, or auto = one for each core of this machine; in a Slurm job one for each of its tasks. `launcher`:
// words before the command of each training, or none, or auto = srun in a Slurm job. InvalidArgument: no number.
absl::StatusOr<Places> FindPlaces(const std::string& slots, const std::string& launcher);

// Whether the trainings of all slots fit into this machine, of which each asks for `asked`; nothing of a kind = no
// limit. `automatic`: takes fewer slots where that is enough. InvalidArgument: they do not fit.
absl::Status FitSlots(const NodeResources& asked, const NodeResources& here, bool automatic, Places* places);

}  // namespace skein
