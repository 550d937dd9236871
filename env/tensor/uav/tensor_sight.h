// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <vector>

#include "env/tensor/uav/tensor_arena.h"
#include "env/tensor/uav/tensor_uav_state.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

namespace skein {

// Computes observations and global states.   TensorUavState -> TensorSight -> obs, global state
// `arena` must outlive it. Constant after construction.
class TensorSight {
 public:
  TensorSight(UavTask task, const UavOptions& options, const UavLayout& layout, const TensorArena* arena);

  // As TensorEnv::Observe and GlobalState. squares: PairSquares of the current state of all worlds, or undefined.
  void WriteObs(const TensorUavState& state, const torch::Tensor& worlds, const torch::Tensor& squares,
                torch::Tensor obs) const;
  void WriteState(const TensorUavState& state, const torch::Tensor& worlds, const torch::Tensor& squares,
                  torch::Tensor global) const;

 private:
  // The state of the selected worlds.
  struct View {
    torch::Tensor x, y, vx, vy, target_x, target_y, distance;  // [K, N]
    torch::Tensor active, crashed;                             // bool [K, N]
    torch::Tensor step, row;                                   // [K]
    torch::Tensor unvisited_cells;                             // [K, G^2]
    torch::Tensor squares;                                     // PairSquares, or undefined.
  };

  View Look(const TensorUavState& state, const torch::Tensor& worlds, const torch::Tensor& squares) const;
  torch::Tensor Squares(const View& view) const;
  torch::Tensor TimeLeft(const torch::Tensor& step) const;
  torch::Tensor Patch(const torch::Tensor& maps, const View& view, const torch::Tensor& i,
                      const torch::Tensor& j) const;
  torch::Tensor Neighbours(const View& view) const;
  // The parts of the global state of UavNavigate and of UavCover.
  std::vector<torch::Tensor> DescribeTeam(const View& view) const;
  std::vector<torch::Tensor> DescribeSearch(const TensorUavState& state, const View& view) const;

  const UavTask task_;
  const UavOptions options_;
  const UavLayout layout_;
  const TensorArena& arena_;
  const int64_t uavs_;  // N
  const torch::Tensor side_, speed_divisor_, reach_divisor_, step_limit_,
      team_;  // Scalar()
};

}  // namespace skein
