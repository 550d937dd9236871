// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "env/env.h"
#include "env/uav/uav_options.h"

// Constants and array layouts shared by both forms of the UAV world, C++ arrays and tensors. Formulas are in
// docs/environments.md.
namespace skein {

enum class UavTask { kNavigate, kCover };
// The task of an environment; nullopt: its worlds are none of UAVs.
std::optional<UavTask> FindUavTask(const std::string& env_id);

enum class UavStatus : unsigned char { kAlive = 0, kArrived = 1, kCrashed = 2 };

inline constexpr int kUavStepLimit = 200;
inline constexpr float kUavArrivalSquared = 0.25f;  // m^2; arrived if nearer than half a metre.
inline constexpr float kSqrtHalf = 0.70710678118654752f;
inline constexpr int kUavHeadings = 8;
inline constexpr int kUavChoices = 1 + kUavHeadings;  // 0 stays.
inline constexpr int kUavMapSide = 10;                // Blocks on a side of the global state's maps, at most.
inline constexpr int kUavNeighbourFloats = 5;
inline constexpr int kUavTeamFloats = 7;
inline constexpr int kUavCellsInWord = 32;  // Cells packed into one word of the saved state.
inline constexpr int kUavSavedDoubles = 8;  // Doubles for each UAV in the saved state.

// Directions of the choices.
inline constexpr float kUavDirectionX[kUavChoices] = {0, 1, kSqrtHalf, 0, -kSqrtHalf, -1, -kSqrtHalf, 0, kSqrtHalf};
inline constexpr float kUavDirectionY[kUavChoices] = {0, 0, kSqrtHalf, 1, kSqrtHalf, 0, -kSqrtHalf, -1, -kSqrtHalf};

// Sizes, and offsets of the parts of an observation, a global state and a saved state; -1 = the task has no such part.
struct UavLayout {
  int cells;       // S^2
  int patch_side;  // 2 R + 1
  int map_side;    // G

  // Offsets in an agent's observation, which begins with position, place in the cell, velocity and time left.
  int obs_time;
  int obs_target;
  int obs_feelers;
  int obs_occupancy;
  int obs_unvisited;
  int obs_neighbours;
  int obs_size;

  // Offsets in the global state, which begins with kUavTeamFloats numbers of the team (UavNavigate) or the UAVs
  // (UavCover).
  int uav_floats;  // Floats for each UAV: alive flag, position, velocity.
  int global_time;
  int global_occupancy;
  int global_unvisited;
  int global_size;

  // Offsets in the saved state, which begins with the steps and the smallest squared separation.
  int words;  // Doubles that hold one set of packed cells.
  int saved_obstacles;
  int saved_visited;
  int saved_uavs;  // [N, kUavSavedDoubles]: x, y, vx, vy, status, flown, start cell, target cell.
  int saved_size;
};

// REQUIRES: CheckUavOptions(options).ok().
UavLayout MakeUavLayout(UavTask task, const UavOptions& options);

// "UavNavigate-v0", "UavCover-v0". REQUIRES: CheckUavOptions(options).ok().
EnvSpec MakeUavSpec(UavTask task, const UavOptions& options);

}  // namespace skein
