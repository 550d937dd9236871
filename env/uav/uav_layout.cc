// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_layout.h"

#include <algorithm>

namespace skein {
namespace {

constexpr char kNavigateId[] = "UavNavigate-v0", kCoverId[] = "UavCover-v0";

}  // namespace

std::optional<UavTask> FindUavTask(const std::string& env_id) {
  if (env_id == kNavigateId) return UavTask::kNavigate;
  if (env_id == kCoverId) return UavTask::kCover;
  return std::nullopt;
}

UavLayout MakeUavLayout(UavTask task, const UavOptions& options) {
  const bool navigate = task == UavTask::kNavigate;
  UavLayout layout = {};
  layout.cells = options.size * options.size;
  layout.patch_side = 2 * options.sensing_radius + 1;
  layout.map_side = std::min(kUavMapSide, options.size);
  const int patch = layout.patch_side * layout.patch_side;
  const int map = layout.map_side * layout.map_side;

  layout.obs_time = 6;
  layout.obs_target = navigate ? layout.obs_time + 1 : -1;
  layout.obs_feelers = layout.obs_time + (navigate ? 6 : 1);
  layout.obs_occupancy = layout.obs_feelers + kUavHeadings;
  layout.obs_unvisited = navigate ? -1 : layout.obs_occupancy + patch;
  layout.obs_neighbours = layout.obs_occupancy + (navigate ? 1 : 2) * patch;
  layout.obs_size = layout.obs_neighbours + options.neighbours * kUavNeighbourFloats;

  layout.uav_floats = navigate ? -1 : 5;
  layout.global_time = navigate ? kUavTeamFloats : options.uavs * layout.uav_floats;
  layout.global_occupancy = navigate ? -1 : layout.global_time + 1;
  layout.global_unvisited = navigate ? -1 : layout.global_occupancy + map;
  layout.global_size = layout.global_time + 1 + (navigate ? 0 : 2 * map);

  layout.words = (layout.cells + kUavCellsInWord - 1) / kUavCellsInWord;
  layout.saved_obstacles = 2;
  layout.saved_visited = layout.saved_obstacles + layout.words;
  layout.saved_uavs = layout.saved_visited + layout.words;
  layout.saved_size = layout.saved_uavs + options.uavs * kUavSavedDoubles;
  return layout;
}

EnvSpec MakeUavSpec(UavTask task, const UavOptions& options) {
  const UavLayout layout = MakeUavLayout(task, options);
  EnvSpec spec = {.id = kCoverId,
                  .num_agents = options.uavs,
                  .obs_size = layout.obs_size,
                  .discrete = !options.continuous,
                  .action_size = options.continuous ? 2 : kUavChoices,
                  .global_state_size = layout.global_size,
                  .state_size = layout.saved_size,
                  .max_episode_steps = kUavStepLimit,
                  .episode_metrics = {"collision_rate", "coverage", "min_separation"}};
  if (task == UavTask::kNavigate) {
    spec.id = kNavigateId;
    spec.episode_metrics = {"success_rate", "collision_rate", "coverage", "path_ratio", "min_separation"};
  }
  if (options.continuous) {
    spec.action_low = {-1, -1};
    spec.action_high = {1, 1};
  }
  return spec;
}

}  // namespace skein
