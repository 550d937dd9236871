// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/number/philox.h"
#include "env/env.h"
#include "env/tensor/tensor_env.h"
#include "env/tensor/tensor_philox.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"
#include "env/uav/uav_world.h"

namespace skein {

// UavNavigate-v0 and UavCover-v0 as tensors: what VectorEnv over UavWorld does, with the same discrete outcomes and, up
// to rounding of sums, the same numbers. docs/environments.md has the formulas, docs/decisions/maps-ahead-of-need.md
// how episodes begin.
class TensorWorld final : public TensorEnv {
 public:
  struct Options : TensorEnv::Options {
    UavTask task = UavTask::kNavigate;
    UavOptions uav;
    int64_t prepared_per_step = 0;  // See PrepareAtOnce; 0 = all.
  };

  // InvalidArgument: as CheckUavOptions; num_envs < 1, max_episode_steps < 0, or indices beyond 2^32.
  static absl::StatusOr<std::unique_ptr<TensorWorld>> Make(const Options& options);

  const EnvSpec& spec() const override { return spec_; }
  int64_t num_envs() const override { return envs_; }
  int64_t state_size() const override { return kBookkeeping + layout_.saved_size; }

  void ResetAll() override;
  StepResult Advance(const torch::Tensor& action) override;
  void BeginEpisodes() override;
  torch::Tensor SaveState() const override;
  absl::Status LoadState(const torch::Tensor& state) override;
  std::vector<int64_t> Steps() const override;
  void BeginRollout() override;
  bool EndRollout() override;
  // The metric path_ratio, on the host, by the search that UavWorld uses. Notes are the episode's number int64 [],
  // status uint8 [A] (UavStatus) and flown float32 [A]; the episode began by Reset.
  void FinishMetrics(uint64_t env_index, const std::vector<torch::Tensor>& notes, float* metrics) const override;

  // How many next episodes' maps are made in each step, at most E; results do not depend on it, unless missed() is
  // true.
  void PrepareAtOnce(int64_t worlds) { prepared_per_step_ = std::min(std::max<int64_t>(worlds, 1), envs_); }
  int64_t prepared_per_step() const { return prepared_per_step_; }
  // Whether an episode began, since ResetAll, LoadState or Restore, whose map had not been made: then all since is
  // void. Never if all are made in each step. Waits for the device.
  bool missed() const;

  // The state on the device, to go back to.
  struct Snapshot {
    std::vector<torch::Tensor> tensors;
  };
  Snapshot Save() const;
  void Restore(const Snapshot& snapshot);

 private:
  static constexpr int kBookkeeping = 3;  // Episode, step, return so far.

  // What goes on, [E, ...] on the device. Worlds have two maps, used in turn: that of episode n is in row 2 e + n % 2.
  struct State {
    torch::Tensor episode, step, left_to_visit, free;                 // int64 [E]
    torch::Tensor episode_return;                                     // float64 [E]
    torch::Tensor separation_squared;                                 // float32 [E]
    torch::Tensor x, y, vx, vy, target_x, target_y, distance, flown;  // float32 [E, N]
    torch::Tensor status;                                             // uint8 [E, N]
    torch::Tensor start, target;                                      // int64 [E, N], cells
    torch::Tensor occupied, unvisited;                                // uint8 [2 E, padded grid]
    torch::Tensor around;                                             // int16 [2 E, padded grid], see Around
    torch::Tensor occupied_share;                                     // float32 [2 E, G^2], of blocks
    torch::Tensor unvisited_cells;                                    // float32 [E, G^2], of blocks; UavCover
    torch::Tensor next_episode;                                       // int64 [E], whose map is in the other row
    torch::Tensor next_start, next_target;                            // int64 [E, N]
    torch::Tensor next_unvisited_cells;                               // float32 [E, G^2]
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
  // The worlds that are looked at.
  struct View {
    torch::Tensor x, y, vx, vy, target_x, target_y, distance;  // [K, N]
    torch::Tensor active, crashed;                             // bool [K, N]
    torch::Tensor step, row;                                   // [K]
    torch::Tensor unvisited_cells;                             // [K, G^2]
  };
  struct Contact {
    torch::Tensor cell;  // int64, into the flattened maps
    torch::Tensor hit;   // bool
  };

  explicit TensorWorld(const Options& options);
  void MakeConstants();
  torch::Tensor Scalar(double value) const;  // float32 [] on the device, for divisions.

  // Maps.
  torch::Tensor Around(const torch::Tensor& occupied) const;
  torch::Tensor BlockCounts(const torch::Tensor& padded_cells) const;
  void Prepare(const torch::Tensor& worlds, const torch::Tensor& episode);
  // Episode `next_episode` where `begins` [E].
  void Begin(const torch::Tensor& begins);
  void MeasureSeparation();

  torch::Tensor Row() const;  // int64 [E], of the current maps.
  // Whether discs at (x, y) [K, ...] touch what is occupied in maps `row`, of x's shape but for sizes of 1.
  Contact Touch(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& row) const;
  // Squared distances [N, K, N] of those that are active, between others the largest float.
  torch::Tensor PairSquares(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& active) const;
  std::pair<torch::Tensor, torch::Tensor> Velocity(const torch::Tensor& action) const;
  // Marks cells and returns what each UAV gets for it, [E, N].
  torch::Tensor Visit(const torch::Tensor& cell, const torch::Tensor& row, const torch::Tensor& visits);
  torch::Tensor Metrics() const;
  View Look(const torch::Tensor& worlds) const;
  torch::Tensor TimeLeft(const torch::Tensor& step) const;
  torch::Tensor Patch(const torch::Tensor& maps, const View& view, const torch::Tensor& i,
                      const torch::Tensor& j) const;
  // `whole`: the view is of all worlds.
  torch::Tensor Neighbours(const View& view, bool whole) const;
  // Global states of UavNavigate and UavCover, in parts. `whole`: the view is of all worlds.
  std::vector<torch::Tensor> DescribeTeam(const View& view, bool whole) const;
  std::vector<torch::Tensor> DescribeSearch(const View& view) const;
  void WriteObs(torch::Tensor obs, const torch::Tensor& worlds) const override;
  void WriteState(torch::Tensor state, const torch::Tensor& worlds) const override;

  // Constant after construction.
  const Options options_;
  const UavLayout layout_;
  EnvSpec spec_;
  const int64_t envs_, uavs_, size_;  // E, N, S
  const int64_t pad_, stride_, grid_size_;
  const float radius_, speed_;
  const torch::Device device_;
  const TensorPhilox philox_;
  torch::Tensor side_, speed_divisor_, reach_divisor_, step_limit_, team_;  // Scalar()
  torch::Tensor step_x_, step_y_;                                           // float32 [choices]
  torch::Tensor walls_, open_;          // uint8 [padded grid]: 1 outside the arena; 1 within
  torch::Tensor cells_, padded_index_;  // int64 [S^2]
  torch::Tensor block_;                 // int64 [padded grid]
  torch::Tensor block_cells_;           // float32 [G^2]
  torch::Tensor worlds_, env_index_;    // int64 [E], from 0 and run-wide
  torch::Tensor self_;                  // float32 [N, 1, N], the largest float where l = k
  torch::Tensor earlier_, number_;      // bool [N, 1, N] l < k; int64 [N, 1, 1] l

  int64_t prepared_per_step_;
  State state_;
  torch::Tensor ended_;                       // bool [E], by the last Advance.
  torch::Tensor missed_;                      // bool []
  torch::Tensor squares_;                     // PairSquares of all as they are now; undefined = not known.
  mutable std::unique_ptr<UavWorld> native_;  // Of FinishMetrics, made when it is first asked.
  Snapshot before_;                           // Of BeginRollout, unless all maps are made in each step.
  int64_t prepared_before_ = 0;               // Not 0: steps that missed a map are taken again, with all of them.
};

// For MakeTensorEnv: worlds that make some of the next maps in each step.
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorUavs(UavTask task, const TensorEnv::Options& options,
                                                          const UavOptions& uav);
template <UavTask task>
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorUavs(const TensorEnv::Options& options,
                                                          const EnvOptions& env_options) {
  return MakeTensorUavs(task, options, env_options.uav);
}

}  // namespace skein
