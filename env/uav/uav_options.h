// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace skein {

// Options of the UAV environments; meanings and defaults as in config.proto, message UavConfig. Lengths are in metres;
// a cell is 1 m wide.
struct UavOptions {
  int uavs = 10;       // N
  int obstacles = 40;  // M
  int size = 20;       // Side of the arena.
  double radius = 0.2;
  double speed = 0.5;  // Per step.
  bool continuous = false;
  int sensing_radius = 3;
  int neighbours = 4;  // K
  double team_share = 0.2;
  double progress_reward = 0.5;
  double target_reward = 5;
  double cover_reward = 1;
  double collision_penalty = 5;
  double step_penalty = 0.02;
};

// InvalidArgument: "env.uav.<name>: ..." for a number out of its range, or more UAVs, targets and obstacles than cells.
absl::Status CheckUavOptions(const UavOptions& options);

}  // namespace skein
