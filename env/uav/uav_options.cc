// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr double kMaxReward = 1e6;
constexpr double kLeastLength = 1e-3;

template <typename Number>
absl::Status CheckRange(const char* name, Number value, Number low, Number high) {
  if (value >= low && value <= high) return absl::OkStatus();  // NaN fails too.
  return absl::InvalidArgumentError(absl::StrCat("env.uav.", name, ": got ", value, ", want ", low, " to ", high));
}

absl::Status CheckLength(const char* name, double value, double high) {
  // Less is nothing beside positions in float32.
  if (value >= kLeastLength && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("env.uav.", name, ": got ", value, ", want ", kLeastLength, " to ", high));
}

}  // namespace

absl::Status CheckUavOptions(const UavOptions& options) {
  for (const absl::Status& status : {
           CheckRange("uavs", options.uavs, 1, 128),
           CheckRange("obstacles", options.obstacles, 0, 16384),
           CheckRange("size", options.size, 2, 128),
           CheckLength("radius", options.radius, 0.49),
           CheckLength("speed", options.speed, 1),
           CheckRange("sensing_radius", options.sensing_radius, 1, 16),
           CheckRange("neighbours", options.neighbours, 0, 127),
           CheckRange("team_share", options.team_share, 0.0, 1.0),
           CheckRange("progress_reward", options.progress_reward, 0.0, kMaxReward),
           CheckRange("target_reward", options.target_reward, 0.0, kMaxReward),
           CheckRange("cover_reward", options.cover_reward, 0.0, kMaxReward),
           CheckRange("collision_penalty", options.collision_penalty, 0.0, kMaxReward),
           CheckRange("step_penalty", options.step_penalty, 0.0, kMaxReward),
       }) {
    if (!status.ok()) return status;
  }
  const int cells = options.size * options.size;
  const int needed = options.obstacles + 2 * options.uavs;
  if (needed <= cells) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "env.uav.", options.obstacles < cells ? "uavs" : "obstacles", ": ", options.uavs, " UAVs, as many targets and ",
      options.obstacles, " obstacles need ", needed, " cells, got ", cells, " (env.uav.size = ", options.size, ")"));
}

}  // namespace skein
