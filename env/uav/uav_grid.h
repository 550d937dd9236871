// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

namespace skein {

// The cells of E arenas, each surrounded by walls, and counts of cells per block for the maps of UavCover. Nothing
// allocates after construction. Not thread-safe.
class UavGrid {
 public:
  UavGrid(const UavOptions& options, const UavLayout& layout, int envs);

  int stride() const { return stride_; }                 // Length of a row of a padded grid.
  int padded_size() const { return stride_ * stride_; }  // Cells of a padded grid.
  int At(int i, int j) const { return (j + pad_) * stride_ + i + pad_; }
  int CellIndex(int cell) const { return At(cell % size_, cell / size_); }

  // Padded grids: 1 = obstacle or wall; 1 = free and not visited.
  const uint8_t* occupied(int env) const { return occupied_.data() + size_t(env) * padded_size(); }
  const uint8_t* unvisited(int env) const { return unvisited_.data() + size_t(env) * padded_size(); }
  // [G, G], the occupied or unvisited share of each block's cells.
  void WriteOccupiedShares(int env, float* shares) const;
  void WriteUnvisitedShares(int env, float* shares) const;
  int free(int env) const { return free_[env]; }                    // Cells without an obstacle.
  int left_to_visit(int env) const { return left_to_visit_[env]; }  // Free cells not yet visited.

  // Removes all obstacles and marks all cells as unvisited.
  void Clear(int env);
  void PlaceObstacle(int env, int cell);
  void MarkVisited(int env, int cell_index);

 private:
  const int size_, cells_;  // S, S^2
  const int pad_,
      stride_;                                 // Cells of wall around an arena; a row of a padded grid.
  std::vector<int> block_;                     // [padded grid], block of the cell; of the maps.
  std::vector<float> block_cells_;             // [G, G], cells of the block.
  std::vector<uint8_t> occupied_, unvisited_;  // [E, padded grid]
  std::vector<float> occupied_map_,
      unvisited_map_;                      // [E, G, G], occupied or unvisited cells of a block.
  std::vector<int> left_to_visit_, free_;  // [E]
};

}  // namespace skein
