// SPDX-License-Identifier: Apache-2.0
#include "base/config/direction_rules.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/phases.h"

namespace skein {

absl::Status TakeSizesFromDirections(const v1::RunConfig& given, v1::RunConfig* config) {
  if (!SearchesDirections(*config)) return absl::OkStatus();
  const bool on_device = config->sync().mode() == v1::SYNC_MODE_ON_DEVICE;
  if (on_device && !given.directions().has_dir_chunk()) config->mutable_directions()->set_dir_chunk(0);
  const v1::DirectionsConfig& directions = config->directions();
  // On a device there are no work orders.
  const uint32_t chunk = on_device ? 1 : directions.dir_chunk() > 0 ? directions.dir_chunk() : directions.num_dirs();
  const v1::RolloutConfig& rollout = given.rollout();
  const auto follows = [config](const char* setting, bool has, uint32_t value, const char* source, uint32_t want) {
    if (!has || value == want || value == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("rollout.", setting, " (", value, ") cannot be set with ",
                                                   AlgorithmName(*config), ": it follows from ", source));
  };
  constexpr char kDirs[] = "directions.num_dirs", kChunk[] = "directions.dir_chunk";
  for (const absl::Status& status :
       {follows("num_envs", rollout.has_num_envs(), rollout.num_envs(), kDirs, directions.num_dirs()),
        follows("envs_per_runner", rollout.has_envs_per_runner(), rollout.envs_per_runner(), kChunk, chunk),
        follows("steps_per_iteration", rollout.has_steps_per_iteration(), rollout.steps_per_iteration(), kDirs,
                directions.num_dirs()),
        follows("fragment_steps", rollout.has_fragment_steps(), rollout.fragment_steps(), kChunk, 0)}) {
    if (!status.ok()) return status;
  }
  config->mutable_rollout()->set_num_envs(directions.num_dirs());
  config->mutable_rollout()->set_envs_per_runner(chunk);
  config->mutable_rollout()->set_steps_per_iteration(directions.num_dirs());
  return absl::OkStatus();
}

absl::Status CheckDirections(const v1::RunConfig& config) {
  if (!SearchesDirections(config)) return absl::OkStatus();
  const v1::DirectionsConfig& directions = config.directions();
  const uint32_t dirs = directions.num_dirs(), chunk = directions.dir_chunk();
  if (chunk > dirs) {
    return absl::InvalidArgumentError(
        absl::StrCat("directions.dir_chunk (", chunk, ") must not exceed directions.num_dirs (", dirs, ")"));
  }
  if (chunk > 0 && dirs % chunk != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("directions.dir_chunk (", chunk, ") must divide directions.num_dirs (", dirs, ")"));
  }
  if (uint64_t{dirs} * directions.num_envs() > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("directions.num_envs (", directions.num_envs(),
                                                   ") times directions.num_dirs (", dirs, ") must be less than 2^32"));
  }
  if (const uint32_t top = TopDirections(config); top > dirs) {
    return absl::InvalidArgumentError(
        absl::StrCat(AlgorithmName(config), ".top_dirs (", top, ") must not exceed directions.num_dirs (", dirs, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> MostEpisodeSteps(const v1::RunConfig& config, uint32_t limit) {
  uint32_t most = 0;
  for (int phase = 0; phase <= config.phases_size(); ++phase) {
    const uint32_t length = ConfigOfPhase(config, static_cast<uint32_t>(phase)).directions().episode_length();
    if (limit == 0 && length == 0) {
      return absl::InvalidArgumentError(
          "directions.episode_length must be set: the environment has no time limit of its own");
    }
    most = std::max(most, limit == 0 || (length > 0 && length < limit) ? length : limit);
  }
  return most;
}

DirectionSettings DirectionSettingsAt(const v1::DirectionsConfig& config, double progress) {
  return {NoiseStd(config, progress), config.episode_length()};
}

double Scheduled(double setting, v1::Schedule schedule, double progress) {
  return schedule == v1::SCHEDULE_LINEAR ? setting * std::max(0.0, 1 - progress) : setting;
}

double NoiseStd(const v1::DirectionsConfig& config, double progress) {
  return Scheduled(config.noise_std(), config.noise_schedule(), progress);
}

}  // namespace skein
