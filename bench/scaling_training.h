// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/telemetry/gpu_monitor.h"
#include "bench/scaling_result.h"
#include "launch/launch_plan.h"

// Measures one configuration by training with it.   skein train -> metrics.jsonl, /proc/stat -> ScalingMeasurement
namespace skein {

// Polled often; returns true if the user wants to stop.
using StopRequested = std::function<bool()>;

// Settings shared by all configurations.
struct TrainingSetup {
  std::string program_folder;                   // Of skein.
  std::string command = "skein bench scaling";  // The user's, for examples in errors.
  std::string recipe = "study";                 // As ChooseRecipe takes it.
  std::string config_path;                      // Empty = none.
  std::string env_id;                           // Empty = the configuration's.
  std::vector<std::string> overrides;           // "a.b=c"
  uint64_t seed = 20227128;
  uint64_t steps_per_iteration = 16384;  // Rounded to a multiple of the environments.
  uint64_t steps_per_env = 0;            // If not 0: steps_per_iteration is this times the environments instead.
  uint32_t iterations = 5;               // Measured ones,
  absl::Duration time;                   // or more, if not 0, until so much time has passed.
  uint32_t warmup = 1;                   // Before them, after all actors have joined. At least 1.
  uint32_t actors = 1;                   // Actor processes, at most one per runner.
};

// The configuration with defaults applied; rollout.num_envs may be 0, the name empty. Errors as ChooseRecipe and
// ReadRunConfig.
absl::StatusOr<v1::RunConfig> ReadSetupConfig(const TrainingSetup& setup);

// The settings ("a.b=c") that give one configuration its sizes, to come after the setup's overrides. A minibatch larger
// than an iteration is reduced to it. A search has a direction for each environment, and episodes of a length that
// fills the iteration. Errors as ReadSetupConfig.
absl::StatusOr<std::vector<std::string>> SizeSettings(const TrainingSetup& setup, const ScalingPoint& point);

// The options of `skein train` for one configuration: enough steps with some to spare, no checkpoints in between and no
// evaluation. `runs_dir` will hold its folder. Sizes as SizeSettings(). Errors as ReadRunConfig and PlanLaunch.
absl::StatusOr<LaunchOptions> TrainingOptions(const TrainingSetup& setup, const ScalingPoint& point,
                                              const std::string& runs_dir);

// The same as arguments of skein.
std::vector<std::string> TrainArguments(const LaunchOptions& options);

// Trains with `options`, whose runs_dir is removed afterwards unless training fails. Measures `setup`'s iterations from
// the end of the warm-up, once all actors have joined. `what` names it in messages, `gpu` may be null. The result's
// point is the caller's to set. Cancelled: `stop` returned true. Unavailable: a program is missing. Others: how
// training ended, with the path of its log.
absl::StatusOr<ScalingMeasurement> MeasureRun(const TrainingSetup& setup, LaunchOptions options,
                                              const std::string& what, GpuMonitor* gpu, const StopRequested& stop);

// The same for TrainingOptions(setup, point), in a new folder below `folder`.
absl::StatusOr<ScalingMeasurement> MeasureTraining(const TrainingSetup& setup, const ScalingPoint& point,
                                                   const std::string& folder, GpuMonitor* gpu,
                                                   const StopRequested& stop);

}  // namespace skein
