// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/number/philox.h"
#include "env/env.h"
#include "env/uav/shortest_path.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

namespace skein {

// E arenas of N UAVs each, as a structure of arrays; docs/environments.md has every formula. The methods are those of
// Env for arena `env`, 0 <= env < E, with the same shapes.
// Nothing allocates after construction. Not thread-safe, and arenas share scratch memory: one thread at a time.
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
  // Of the UAVs that take part in a step, in the order of their numbers; overwritten by each call.
  struct Scratch {
    std::vector<int> uav;  // Its number.
    std::vector<float> x, y, vx, vy, own;
    std::vector<uint8_t> crashed;
    std::vector<int> new_cell;           // Index into a padded grid, -1 = none.
    std::vector<float> nearest_squared;  // Of neighbours [K], and which they are.
    std::vector<int> nearest;
    std::vector<uint64_t> keys;  // [S^2], of a reset.
  };

  // Index of a cell in a padded grid.
  int At(int i, int j) const { return (j + pad_) * stride_ + i + pad_; }
  int CellIndex(int cell) const { return At(cell % size_, cell / size_); }
  // Cell (0, 0) of an arena in occupied_ or unvisited_.
  const uint8_t* Origin(const std::vector<uint8_t>& grids, int env) const {
    return grids.data() + size_t(env) * grid_size_ + At(0, 0);
  }
  void Move(int env, const float* action, int taking_part);
  void Collide(int env, int taking_part);
  void Visit(int env, int taking_part);
  void MarkVisited(int env, int cell_index);
  void SetTarget(size_t uav, int cell);
  float DistanceSquared(size_t uav) const;
  // Empties the arena and clears its counters; then obstacles, then UAVs are put in.
  void Clear(int env);
  void PlaceObstacle(int env, int cell);
  // Fills the scratch with those that take part; returns how many.
  int Gather(int env) const;
  float TimeLeft(int env) const;
  float MeanPathRatio(int env) const;
  // Global states of UavNavigate and UavCover, but for the time left.
  void DescribeTeam(int env, float* state) const;
  void DescribeSearch(int env, float* state) const;
  void ObserveCells(const uint8_t* cell, float* obs) const;
  void ObserveNeighbours(int self, int taking_part, float* obs) const;

  // Constant after construction.
  const UavTask task_;
  const UavOptions options_;
  const UavLayout layout_;
  const EnvSpec spec_;
  const int uavs_, size_;   // N, S
  const int pad_, stride_;  // Cells of wall around an arena; a row of a padded grid.
  const int grid_size_;     // Cells of a padded grid.
  const float radius_, speed_;
  float step_x_[kUavChoices], step_y_[kUavChoices];  // Velocities of the choices.
  std::vector<int> block_;                           // [padded grid], block of the cell; of the maps.
  std::vector<float> block_cells_;                   // [G, G], cells of the block.

  // [E, padded grid]: 1 = obstacle or wall; 1 = free and not visited.
  std::vector<uint8_t> occupied_, unvisited_;
  std::vector<float> occupied_map_, unvisited_map_;  // [E, G, G], cells of a block that are so.
  // [E]
  std::vector<int> steps_, taking_part_, left_to_visit_, free_;
  std::vector<float> separation_squared_;  // The smallest so far.
  // [E, N]
  std::vector<float> x_, y_, vx_, vy_, target_x_, target_y_, distance_, flown_;
  std::vector<UavStatus> status_;
  std::vector<int> start_, target_;  // Cells.

  mutable Scratch scratch_;
  mutable ShortestPath shortest_path_;
};

}  // namespace skein
