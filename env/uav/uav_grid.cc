// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_grid.h"

#include <algorithm>

namespace skein {

UavGrid::UavGrid(const UavOptions& options, const UavLayout& layout, int envs)
    : size_(options.size),
      cells_(layout.cells),
      // A UAV that was loaded one cell outside of the arena looks so far, and one step and one cell farther.
      pad_(options.sensing_radius + 2),
      stride_(size_ + 2 * pad_) {
  const int side = layout.map_side;
  block_.resize(padded_size());
  block_cells_.resize(side * side);
  for (int j = 0; j < size_; ++j) {
    for (int i = 0; i < size_; ++i) {
      block_[At(i, j)] = j * side / size_ * side + i * side / size_;
      block_cells_[block_[At(i, j)]] += 1;
    }
  }
  occupied_.resize(size_t(envs) * padded_size(), 1);
  unvisited_.resize(size_t(envs) * padded_size());
  occupied_map_.resize(size_t(envs) * side * side);
  unvisited_map_.resize(size_t(envs) * side * side);
  left_to_visit_.resize(envs);
  free_.resize(envs);
}

void UavGrid::Clear(int env) {
  uint8_t* const occupied = occupied_.data() + size_t(env) * padded_size();
  uint8_t* const unvisited = unvisited_.data() + size_t(env) * padded_size();
  for (int j = 0; j < size_; ++j) {
    std::fill_n(occupied + At(0, j), size_, uint8_t{0});
    std::fill_n(unvisited + At(0, j), size_, uint8_t{1});
  }
  const size_t blocks = block_cells_.size();
  std::fill_n(occupied_map_.begin() + env * blocks, blocks, 0.0f);
  std::copy(block_cells_.begin(), block_cells_.end(), unvisited_map_.begin() + env * blocks);
  free_[env] = left_to_visit_[env] = cells_;
}

void UavGrid::PlaceObstacle(int env, int cell) {
  const int index = CellIndex(cell);
  occupied_[size_t(env) * padded_size() + index] = 1;
  occupied_map_[env * block_cells_.size() + block_[index]] += 1;
  MarkVisited(env, index);
  --free_[env];
}

void UavGrid::MarkVisited(int env, int cell_index) {
  uint8_t& unvisited = unvisited_[size_t(env) * padded_size() + cell_index];
  if (unvisited == 0) return;
  unvisited = 0;
  --left_to_visit_[env];
  unvisited_map_[env * block_cells_.size() + block_[cell_index]] -= 1;
}

void UavGrid::WriteOccupiedShares(int env, float* shares) const {
  const size_t blocks = block_cells_.size();
  for (size_t block = 0; block < blocks; ++block) {
    shares[block] = occupied_map_[env * blocks + block] / block_cells_[block];
  }
}

void UavGrid::WriteUnvisitedShares(int env, float* shares) const {
  const size_t blocks = block_cells_.size();
  for (size_t block = 0; block < blocks; ++block) {
    shares[block] = unvisited_map_[env * blocks + block] / block_cells_[block];
  }
}

}  // namespace skein
