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

  struct Contact {
    torch::Tensor cell;  // int64 [H, K, N], of the end, into the flattened maps
    torch::Tensor hit;   // bool [H, K, N]
  };
  // Where discs are at the start of a step [K, N], and H velocities of each: [H, 1, 1] or [H, K, N].
  struct Flight {
    torch::Tensor x, y, vx, vy;
  };
  // Whether discs touch an occupied cell on their way to the ends [H, K, N], both ends included, in maps `row` [K, 1].
  // around: of all maps, see Around.
  Contact Fly(const torch::Tensor& around, const Flight& flight, const torch::Tensor& end_x, const torch::Tensor& end_y,
              const torch::Tensor& row) const;
  // Squared distances [N, K, N] between active UAVs; for all other pairs the largest float.
  torch::Tensor PairSquares(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& active) const;
  // [K, N]: the smallest squared distance between an active UAV and another during a step from x, y by vx, vy to the
  // ends, all [K, N]; the largest float for those that are not active, and where no other is.
  torch::Tensor NearestSquares(const Flight& flight, const torch::Tensor& end_x, const torch::Tensor& end_y,
                               const torch::Tensor& active) const;
  // Bits for each cell (i, j), so that one lookup finds all that a disc can touch: bit 3 (b + 1) + (a + 1) is cell
  // (i + a, j + b), -1 <= a, b <= 1; bit 9 + 4 (b + 1) + (a + 1) whether a cell with the corner (i + a, j + b) is
  // occupied, -1 <= a, b <= 2. Cells in the two outermost rings have no corners, those in the outermost nothing.
  // occupied: [K, padded cells]; int32 [K, padded cells]
  torch::Tensor Around(const torch::Tensor& occupied) const;
  // The number of `padded_cells` [K, n] in each block: float32 [K, G^2].
  torch::Tensor BlockCounts(const torch::Tensor& padded_cells) const;
  torch::Tensor Scalar(double value) const;  // float32 [] on the device, for divisions.

  const int64_t size, pad, stride, grid_size;  // Arena side; wall width; a row and all of a padded grid.
  const float radius;
  const int reach;  // ReachOfAStep()
  const torch::Device device;
  torch::Tensor step_x, step_y;  // float32 [choices]
  torch::Tensor walls,
      open;                           // uint8 [padded grid]: 1 outside the arena; 1 within
  torch::Tensor cells, padded_index;  // int64 [S^2]
  torch::Tensor block;                // int64 [padded grid]
  torch::Tensor block_cells;          // float32 [G^2]
  torch::Tensor self;                 // float32 [N, 1, N], the largest float where l = k
  torch::Tensor earlier, number;      // bool [N, 1, N] l < k; int64 [N, 1, 1] l
  // The corners that a step can reach, relative to the cell where it starts, float32 [C, 1, 1, 1]; their bits in
  // Around, int32 [C, 1, 1, 1].
  torch::Tensor corner_x, corner_y, corner_bit;

 private:
  struct Touched {
    torch::Tensor cell, bits, hit;  // int64, into the flattened maps; of Around; bool
    torch::Tensor i, j;             // float32, the cell
  };
  Touched Touch(const torch::Tensor& around, const torch::Tensor& x, const torch::Tensor& y,
                const torch::Tensor& row) const;
  // Whether a corner of an occupied cell is beside the way and nearer than the radius.
  torch::Tensor PassesCorner(const Touched& start, const Flight& flight) const;
  // Whether the middle crosses an occupied cell between the first and the last.
  torch::Tensor PassesCell(const Touched& start, const Touched& end, const Flight& flight) const;
};

}  // namespace skein
