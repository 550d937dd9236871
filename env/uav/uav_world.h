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

namespace skein {

// Of the UAVs that take part in a step, in the order of their numbers; overwritten by each call.
struct UavScratch {
  std::vector<int> uav;  // Its number.
  std::vector<float> x, y, vx, vy, own;
  std::vector<uint8_t> crashed;
  std::vector<int> new_cell;           // Index into a padded grid, -1 = none.
  std::vector<float> nearest_squared;  // Of neighbours [K], and which they are.
  std::vector<int> nearest;
  std::vector<uint64_t> keys;  // [S^2], of a reset.
};

// [E, N]
struct UavArrays {
  std::vector<float> x, y, vx, vy, target_x, target_y, distance, flown;
  std::vector<UavStatus> status;
  std::vector<int> start, target;  // Cells.
};

// E arenas of N UAVs each, as a structure of arrays; docs/environments.md has every formula. The methods are those of
// Env for arena `env`, 0 <= env < E, with the same shapes. Nothing allocates after construction. Not thread-safe, and
// arenas share scratch memory: one thread at a time.
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
  // Numbers that no SaveState wrote are brought into range. REQUIRES: they are finite.
  void LoadState(int env, const double* state);

 private:
  void Move(int env, const float* action, int taking_part);
  void Collide(int env, int taking_part);
  void Visit(int env, int taking_part);
  void SetTarget(size_t uav, int cell);
  float DistanceSquared(size_t uav) const;
  // Empties the arena and clears its counters; then obstacles, then UAVs are put in.
  void Clear(int env);
  // Fills the scratch with those that take part; returns how many.
  int Gather(int env) const;
  float TimeLeft(int env) const;
  float MeanPathRatio(int env) const;
  // Global states of UavNavigate and UavCover, but for the time left.
  void DescribeTeam(int env, float* state) const;
  void DescribeSearch(int env, float* state) const;

  // Constant after construction.
  const UavTask task_;
  const UavOptions options_;
  const UavLayout layout_;
  const EnvSpec spec_;
  const int uavs_, size_;  // N, S
  const float radius_, speed_;
  float step_x_[kUavChoices], step_y_[kUavChoices];  // Velocities of the choices.

  UavGrid grid_;
  std::vector<int> steps_, taking_part_;   // [E]
  std::vector<float> separation_squared_;  // [E], the smallest so far.
  UavArrays all_;

  mutable UavScratch scratch_;
  mutable ShortestPath shortest_path_;
};

}  // namespace skein
