// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// State of each UAV, [E, N] on the device.
struct TensorUavs {
  torch::Tensor x, y, vx, vy, target_x, target_y, distance, flown;  // float32
  torch::Tensor status;                                             // uint8, UavStatus
  torch::Tensor start, target;                                      // int64, cells
};

// Maps of the worlds. Each world has two, used in turn: that of episode n is in row 2 e + n % 2.
struct TensorMaps {
  torch::Tensor occupied, unvisited;      // uint8 [2 E, padded grid]
  torch::Tensor around;                   // int32 [2 E, padded grid], see TensorArena::Around
  torch::Tensor occupied_share;           // float32 [2 E, G^2], of blocks
  torch::Tensor unvisited_cells;          // float32 [E, G^2], of blocks; UavCover
  torch::Tensor next_episode;             // int64 [E], the episode whose map is in the other row
  torch::Tensor next_start, next_target;  // int64 [E, N]
  torch::Tensor next_unvisited_cells;     // float32 [E, G^2]
};

// The complete state of E worlds with N UAVs each.
struct TensorUavState : TensorUavs, TensorMaps {
  torch::Tensor episode, step, left_to_visit, free;  // int64 [E]
  torch::Tensor episode_return;                      // float64 [E]
  torch::Tensor separation_squared;                  // float32 [E]

  torch::Tensor first_row;  // int64 [E], 2 e; constant.

  torch::Tensor Row() const { return first_row + episode.bitwise_and(1); }  // int64 [E], of the current maps.

  // Calls `visit` with each tensor that is not constant.
  template <typename Visit>
  void Each(Visit visit) {
    for (torch::Tensor* tensor : {&episode,
                                  &step,
                                  &left_to_visit,
                                  &free,
                                  &episode_return,
                                  &separation_squared,
                                  &x,
                                  &y,
                                  &vx,
                                  &vy,
                                  &target_x,
                                  &target_y,
                                  &distance,
                                  &flown,
                                  &status,
                                  &start,
                                  &target,
                                  &occupied,
                                  &unvisited,
                                  &around,
                                  &occupied_share,
                                  &unvisited_cells,
                                  &next_episode,
                                  &next_start,
                                  &next_target,
                                  &next_unvisited_cells}) {
      visit(tensor);
    }
  }
};

}  // namespace skein
