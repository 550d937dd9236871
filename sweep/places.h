// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/resource_share.h"
#include "launch/node_bookings.h"

namespace skein {

// Places at which the trainings of a sweep run: slots of this machine or of a Slurm job. Workers may lend more.
struct Places {
  uint32_t slots = 1;
  uint32_t cores = 1;                 // Of each: its runner threads.
  std::vector<std::string> launcher;  // Words before the command of each, empty = none. They end with this process.
  std::string array_job;              // Of this process, if it is one of a Slurm job array; see ArrayPlaces.
  std::vector<std::string> gpus;      // CUDA_VISIBLE_DEVICES of each slot; empty = as this process has it.
};

// `slots`: a number (0 = none but those of workers), or auto = one for each core of this machine; in a Slurm job one
// for each of its tasks, or as many with `share` as their CPUs are enough for. `launcher`: words before the command of
// each training, or none, or auto = srun in a Slurm job, which then holds trainings to `share`. InvalidArgument: no
// number; a share that cannot be enforced.
absl::StatusOr<Places> FindPlaces(const std::string& slots, const std::string& launcher, const ResourceShare& share);

// Of a machine that lends them to a sweep; auto = as many as its cores are enough for. InvalidArgument: no number.
absl::StatusOr<Places> PlacesOfWorker(const std::string& slots, uint32_t cores_per_slot);

// Whether the trainings of all slots fit into this machine, of which each asks for `asked`; nothing of a kind = no
// limit. `automatic`: takes fewer slots where that is enough. InvalidArgument: they do not fit.
absl::Status FitSlots(const NodeResources& asked, const NodeResources& here, bool automatic, Places* places);

// The same for trainings that each have `share` with all their processes, which ask for `asked` themselves.
// `automatic`: as many slots as there is room for in what is `left` of this machine, but at least one; without a share
// of CPUs no more than there are. What other runs leave is for NodeBooking to judge. InvalidArgument: a training's
// processes ask for more than its share; the GPUs cannot be divided so.
absl::Status FitShares(const ResourceShare& share, const NodeResources& asked, const NodeResources& left,
                       bool automatic, Places* places);

// Spreads the slots over `gpus`, as CUDA_VISIBLE_DEVICES names them: a share below 1 (or none) has one GPU, of which
// slots have as few others as may be; a larger one has so many alone. REQUIRES: FitShares().
void SpreadOverGpus(const ResourceShare& share, const std::vector<std::string>& gpus, Places* places);

}  // namespace skein
