// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/number/philox.h"
#include "env/env.h"
#include "env/uav/shortest_path.h"
#include "env/uav/uav_grid.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

// The UAV environments as arrays on the CPU.
namespace skein {

// Scratch arrays with one entry for each alive UAV, in the order of their numbers. Overwritten by each call.
struct UavScratch {
  std::vector<int> uav;  // Number of the UAV.
  std::vector<float> x, y, vx, vy, own;
  std::vector<float> from_x, from_y;  // Before the step.
  std::vector<uint8_t> crashed;
  std::vector<int> new_cell;           // Index into a padded grid, -1 = none.
  std::vector<float> nearest_squared;  // Of neighbours [K], and their numbers.
  std::vector<int> nearest;
  std::vector<uint64_t> keys;  // [S^2], used by Reset.
};

// State of each UAV, [E, N].
struct UavArrays {
  std::vector<float> x, y, vx, vy, target_x, target_y, distance, flown;
  std::vector<UavStatus> status;
  std::vector<int> start, target;  // Cells.
};

// E arenas of N UAVs each, as a structure of arrays; docs/environments.md has every formula. The methods are those of
// Env for arena `env`, 0 <= env < E, with the same shapes. Nothing allocates after construction. Not thread-safe: the
// arenas share scratch memory, so that one thread at a time may use them.
class UavWorld {
 public:
  // REQUIRES: CheckUavOptions(options).ok(), envs >= 1.
  UavWorld(UavTask task, const UavOptions& options, int envs);

  const EnvSpec& spec() const { return spec_; }

  void Reset(int env, RandomStream& random);
  bool Step(int env, const float* action, float* reward);
  void Observe(int env, float* obs) const;
  void GlobalState(int env, float* state) const;
  void Active(int env, uint8_t* active) const;
  void EpisodeMetrics(int env, float* metrics) const;
  void SaveState(int env, double* state) const;
  // Numbers that SaveState cannot have written are brought into range. REQUIRES: all are finite.
  void LoadState(int env, const double* state);

 private:
  void Move(int env, const float* action, int alive);
  void Collide(int env, int alive);
  void Visit(int env, int alive);
  void SetTarget(size_t uav, int cell);
  float DistanceSquared(size_t uav) const;
  // Empties the arena and clears its counters. Obstacles and then UAVs are placed afterwards.
  void Clear(int env);
  // Fills the scratch arrays with the alive UAVs; returns their number.
  int Gather(int env) const;
  float TimeLeft(int env) const;
  float MeanPathRatio(int env) const;
  // Global states of UavNavigate and UavCover, without the time left.
  void DescribeTeam(int env, float* state) const;
  void DescribeSearch(int env, float* state) const;

  // Constant after construction.
  const UavTask task_;
  const UavOptions options_;
  const UavLayout layout_;
  const EnvSpec spec_;
  const int uavs_, size_;  // N, S
  const float radius_, speed_;
  const int reach_;                                  // ReachOfAStep()
  float step_x_[kUavChoices], step_y_[kUavChoices];  // Velocities of the choices.

  UavGrid grid_;
  std::vector<int> steps_, alive_;         // [E]
  std::vector<float> separation_squared_;  // [E], the smallest so far.
  UavArrays all_;

  mutable UavScratch scratch_;
  mutable ShortestPath shortest_path_;
};

}  // namespace skein
