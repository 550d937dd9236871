// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/telemetry/gpu_monitor.h"
#include "bench/scaling_result.h"
#include "launch/launch_plan.h"

// Measures one configuration by training with it.   skein train -> metrics.jsonl, /proc/stat -> ScalingMeasurement
namespace skein {

// Asked often whether the user wants an end.
using StopRequested = std::function<bool()>;

// What is the same for all configurations.
struct TrainingSetup {
  std::string program_folder;          // Of skein.
  std::string config_path;             // Empty = none.
  std::string env_id;                  // Empty = the configuration's.
  std::vector<std::string> overrides;  // "a.b=c"
  uint64_t seed = 20227128;
  uint64_t steps_per_iteration = 16384;  // Rounded to a multiple of the environments.
  uint64_t steps_per_env = 0;            // If not 0: steps_per_iteration is this times the environments instead.
  uint32_t iterations = 5;               // Measured ones.
  uint32_t warmup = 1;                   // Before them, and after the actors' joining. At least 1.
  uint32_t actors = 1;                   // Actor processes, if there are as many runners.
};

// The options of `skein train` for one configuration, with as many steps as it takes and some to spare, no checkpoint
// in between and no evaluation. `runs_dir` is where its folder goes. A minibatch that does not fit into an iteration is
// as large as that. Errors as ReadRunConfig and PlanLaunch.
absl::StatusOr<LaunchOptions> TrainingOptions(const TrainingSetup& setup, const ScalingPoint& point,
                                              const std::string& runs_dir);

// The same as arguments of skein.
std::vector<std::string> TrainArguments(const LaunchOptions& options);

// Trains in a new folder below `folder`, which is removed afterwards unless the training fails. Measures from the end
// of the warm-up, and not before all actors have joined. `gpu` may be null. Cancelled: `stop` said so.
// Unavailable: a program is missing. Otherwise how the training ended, with the path of its log.
absl::StatusOr<ScalingMeasurement> MeasureTraining(const TrainingSetup& setup, const ScalingPoint& point,
                                                   const std::string& folder, GpuMonitor* gpu,
                                                   const StopRequested& stop);

}  // namespace skein
