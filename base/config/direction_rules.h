// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"

// The rules of runs whose work is directions (DirectionsConfig). Names no algorithm.
namespace skein {

// Sets the sizes that follow from `directions`, so that all that plans and grants work counts directions where it
// counts environments otherwise: rollout.num_envs = num_dirs, envs_per_runner = dir_chunk, steps_per_iteration =
// num_dirs. In mode on_device envs_per_runner = 1, and dir_chunk = 0 (all) unless it is given. No effect on other runs.
// `given`: the settings without defaults. InvalidArgument: one of these settings, or
// fragment_steps, was given another value. REQUIRES: defaults are applied to `config`.
absl::Status TakeSizesFromDirections(const v1::RunConfig& given, v1::RunConfig* config);

// InvalidArgument: names the settings that contradict each other. OK for other runs. REQUIRES: TakeSizesFromDirections.
absl::Status CheckDirections(const v1::RunConfig& config);

// The most steps of an episode of a direction, in any phase of the run. `limit`: the environment's own; 0 = it has
// none. InvalidArgument: there is a phase in which neither is set.
absl::StatusOr<uint32_t> MostEpisodeSteps(const v1::RunConfig& config, uint32_t limit);

// What all directions of an iteration share.
struct DirectionSettings {
  double noise_std = 0;         // Standard deviation of the perturbation.
  uint32_t episode_length = 0;  // directions.episode_length; 0 = MostEpisodeSteps.

  // The steps after which an episode ends. `most`: of MostEpisodeSteps.
  uint32_t EpisodeSteps(uint32_t most) const { return episode_length > 0 ? std::min(episode_length, most) : most; }
};

// The settings at `progress` of the run, in [0, 1]. `config`: of the phase.
DirectionSettings DirectionSettingsAt(const v1::DirectionsConfig& config, double progress);

// The standard deviation of the noise at `progress` of the run, in [0, 1].
double NoiseStd(const v1::DirectionsConfig& config, double progress);

// What a schedule leaves of a setting at `progress` of the run.
double Scheduled(double setting, v1::Schedule schedule, double progress);

}  // namespace skein
