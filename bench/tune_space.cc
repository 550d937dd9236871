// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_space.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"

namespace skein {
namespace {

constexpr uint64_t kMostRunners = 1024, kMostEnvsPerRunner = 256;
constexpr uint64_t kMostWorlds = 65536;
constexpr uint64_t kMostMoreDirections = 8;  // Times those of the configuration.
constexpr uint64_t kLeastDeviceSteps = 4;    // Of a world in an iteration.

absl::StatusOr<TuneSpace> StepsByActors(const v1::RunConfig& config, uint64_t cores) {
  const uint64_t steps = config.rollout().steps_per_iteration();
  TuneSpace space;
  space.fits = [steps](const TunePoint& point) { return steps > 0 && steps % (point[0] * point[1]) == 0; };
  TunePoint start = {std::clamp<uint64_t>(config.rollout().envs_per_runner(), 1, kMostEnvsPerRunner),
                     std::clamp<uint64_t>(cores, 1, kMostRunners)};
  while (start[1] > 1 && !space.fits(start)) --start[1];
  while (start[0] > 1 && !space.fits(start)) --start[0];
  if (!space.fits(start)) return absl::InvalidArgumentError("rollout.steps_per_iteration: got 0, want at least 1");
  space.knobs = {{.start = start[0], .factor = 4, .most = kMostEnvsPerRunner},
                 {.start = start[1], .factor = 2, .most = kMostRunners}};
  space.settings = [](const TunePoint& point) -> TuneSettings {
    return {{kRunnersFlag, point[1]}, {"rollout.num_envs", point[0] * point[1]}, {"rollout.envs_per_runner", point[0]}};
  };
  return space;
}

TuneSpace DirectionsByActors(const v1::RunConfig& config, uint64_t cores) {
  const uint64_t dirs = config.directions().num_dirs();
  const uint64_t chunk = config.directions().dir_chunk() > 0 ? config.directions().dir_chunk() : dirs;
  TuneSpace space;
  // More runners than work orders would have nothing to do.
  space.fits = [](const TunePoint& point) { return point[2] % point[0] == 0 && point[1] <= point[2] / point[0]; };
  space.knobs = {{.start = chunk, .factor = 2, .most = dirs},
                 {.start = std::min(cores, dirs / chunk), .factor = 2, .most = kMostRunners},
                 {.start = dirs, .factor = 2, .least = dirs, .most = kMostMoreDirections * dirs}};
  space.settings = [](const TunePoint& point) -> TuneSettings {
    return {{kRunnersFlag, point[1]}, {"directions.num_dirs", point[2]}, {"directions.dir_chunk", point[0]}};
  };
  space.learned = {"directions.num_dirs"};
  return space;
}

TuneSpace StepsOnDevice(const v1::RunConfig& config) {
  const uint64_t steps = config.rollout().steps_per_iteration(), given = config.rollout().num_envs();
  TuneSpace space;
  space.fits = [steps](const TunePoint& point) {
    return steps % point[0] == 0 && steps / point[0] >= kLeastDeviceSteps;
  };
  uint64_t start = given > 0 ? given : std::max<uint64_t>(1, steps / 32);
  while (start > 1 && !space.fits({start})) --start;
  space.knobs = {{.start = start, .factor = 2, .most = kMostWorlds * 16}};
  space.settings = [](const TunePoint& point) -> TuneSettings {
    return {{"rollout.num_envs", point[0]}, {"rollout.envs_per_runner", 1}};
  };
  return space;
}

TuneSpace DirectionsOnDevice(const v1::RunConfig& config) {
  const uint64_t dirs = config.directions().num_dirs(), chunk = config.directions().dir_chunk();
  const uint64_t worlds = config.directions().num_envs();
  TuneSpace space;
  space.fits = [](const TunePoint& point) { return point[1] % point[2] == 0; };
  space.knobs = {{.start = worlds, .factor = 4, .least = worlds, .most = kMostWorlds},
                 {.start = dirs, .factor = 2, .least = dirs, .most = kMostMoreDirections * dirs},
                 {.start = chunk > 0 ? dirs / chunk : 1, .factor = 2, .most = dirs}};
  space.settings = [](const TunePoint& point) -> TuneSettings {
    const uint64_t at_once = point[2] == 1 ? 0 : point[1] / point[2];
    return {{"directions.num_envs", point[0]}, {"directions.num_dirs", point[1]}, {"directions.dir_chunk", at_once}};
  };
  space.learned = {"directions.num_envs", "directions.num_dirs"};
  return space;
}

}  // namespace

absl::StatusOr<TuneSpace> MakeTuneSpace(const v1::RunConfig& config, uint32_t cores) {
  const bool on_device = config.sync().mode() == v1::SYNC_MODE_ON_DEVICE;
  if (SearchesDirections(config)) return on_device ? DirectionsOnDevice(config) : DirectionsByActors(config, cores);
  if (config.rollout().steps_per_iteration() > 0 && on_device) return StepsOnDevice(config);
  return StepsByActors(config, cores);
}

std::string AsFlags(const TuneSettings& settings) {
  return absl::StrJoin(settings, " ", [](std::string* out, const auto& setting) {
    const auto& [name, value] = setting;
    const std::string flag = name == kRunnersFlag                ? "--runners "
                             : name == "rollout.num_envs"        ? "--envs "
                             : name == "rollout.envs_per_runner" ? "--envs-per-runner "
                                                                 : absl::StrCat("--set ", name, "=");
    absl::StrAppend(out, flag, value);
  });
}

std::vector<std::string> AsOverrides(const TuneSettings& settings) {
  std::vector<std::string> overrides;
  for (const auto& [name, value] : settings) {
    if (name != kRunnersFlag) overrides.push_back(absl::StrCat(name, "=", value));
  }
  return overrides;
}

absl::StatusOr<std::string> ProfileText(const v1::RunConfig& user, const std::vector<std::string>& overrides,
                                        const std::vector<std::string>& comment) {
  v1::RunConfig profile = user;
  for (const std::string& one : overrides) {
    if (absl::Status s = ApplyOverride(one, &profile); !s.ok()) return s;
  }
  std::string text;
  for (const std::string& line : comment) absl::StrAppend(&text, "# ", line, "\n");
  return text + ToYaml(profile);
}

}  // namespace skein
