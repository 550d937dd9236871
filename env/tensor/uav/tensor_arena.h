// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

namespace skein {

// Constants shared by the arenas of all worlds, on the device, and geometric queries on them. Constant after
// construction. Grids are padded with walls, [padded cells].
struct TensorArena {
  TensorArena(const UavOptions& options, const UavLayout& layout, torch::Device device);

  // Whether discs at (x, y) [K, ...] touch an occupied cell in maps `row`, which has x's shape except for sizes of 1.
  // around: of all maps, see Around.
  struct Contact {
    torch::Tensor cell;  // int64, into the flattened maps
    torch::Tensor hit;   // bool
  };
  Contact Touch(const torch::Tensor& around, const torch::Tensor& x, const torch::Tensor& y,
                const torch::Tensor& row) const;
  // Squared distances [N, K, N] between active UAVs; for all other pairs the largest float.
  torch::Tensor PairSquares(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& active) const;
  // Nine bits for each cell: bit 3 (b + 1) + (a + 1) is cell (i + a, j + b), so one lookup finds all that a disc can
  // touch.
  // occupied: [K, padded cells]
  torch::Tensor Around(const torch::Tensor& occupied) const;
  // The number of `padded_cells` [K, n] in each block: float32 [K, G^2].
  torch::Tensor BlockCounts(const torch::Tensor& padded_cells) const;
  torch::Tensor Scalar(double value) const;  // float32 [] on the device, for divisions.

  const int64_t size, pad, stride, grid_size;  // Arena side; wall width; a row and all of a padded grid.
  const float radius;
  const torch::Device device;
  torch::Tensor step_x, step_y;  // float32 [choices]
  torch::Tensor walls,
      open;                           // uint8 [padded grid]: 1 outside the arena; 1 within
  torch::Tensor cells, padded_index;  // int64 [S^2]
  torch::Tensor block;                // int64 [padded grid]
  torch::Tensor block_cells;          // float32 [G^2]
  torch::Tensor self;                 // float32 [N, 1, N], the largest float where l = k
  torch::Tensor earlier, number;      // bool [N, 1, N] l < k; int64 [N, 1, 1] l
};

}  // namespace skein
