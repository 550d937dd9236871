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
#include "env/tensor/uav/tensor_arena.h"
#include "env/tensor/uav/tensor_sight.h"
#include "env/tensor/uav/tensor_uav_state.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"
#include "env/uav/uav_world.h"

namespace skein {

// UavNavigate-v0 and UavCover-v0 as tensors: the counterpart of VectorEnv over UavWorld, with the same discrete
// outcomes and, up to rounding of sums, the same numbers. docs/environments.md has the formulas;
// docs/decisions/maps-ahead-of-need.md describes how episodes begin.
class TensorWorld final : public TensorEnv {
 public:
  struct Options : TensorEnv::Options {
    UavTask task = UavTask::kNavigate;
    UavOptions uav;
    int64_t prepared_per_step = 0;  // See PrepareAtOnce; 0 = all.
  };

  // InvalidArgument: as CheckUavOptions; worlds < 1, max_episode_steps < 0, or indices beyond 2^32.
  static absl::StatusOr<std::unique_ptr<TensorWorld>> Make(const Options& options);

  const EnvSpec& spec() const override { return spec_; }
  int64_t worlds() const override { return envs_; }
  int64_t state_size() const override { return kBookkeeping + layout_.saved_size; }

  void BeginAll(int64_t episode) override;
  StepResult Advance(const torch::Tensor& action) override;
  void BeginEpisodes() override;
  torch::Tensor SaveState() const override;
  absl::Status LoadState(const torch::Tensor& state) override;
  std::vector<int64_t> Steps() const override;
  std::vector<torch::Tensor*> Tensors() override;
  void BeginRollout() override;
  bool EndRollout() override;
  // Computes the metric path_ratio on the host, with UavWorld's search. Notes are the episode's number int64 [], status
  // uint8 [A] (UavStatus) and flown float32 [A]. REQUIRES: the episode began by Reset.
  void FinishMetrics(uint64_t env_index, const std::vector<torch::Tensor>& notes, float* metrics) const override;

  // Sets for how many worlds the next map is made in each step, at most E. Results do not depend on it, unless missed()
  // is true.
  void PrepareAtOnce(int64_t worlds) { prepared_per_step_ = std::min(std::max<int64_t>(worlds, 1), envs_); }
  int64_t prepared_per_step() const { return prepared_per_step_; }
  // Whether an episode began, since ResetAll, LoadState or Restore, whose map had not been made; all results since are
  // then void. Always false if all maps are made in each step. Waits for the device.
  bool missed() const;

  // A copy of the state on the device, for Restore.
  struct Snapshot {
    std::vector<torch::Tensor> tensors;
  };
  Snapshot Save() const;
  void Restore(const Snapshot& snapshot);

 private:
  static constexpr int kBookkeeping = 3;  // Episode, step, return so far.

  explicit TensorWorld(const Options& options);
  void Prepare(const torch::Tensor& worlds, const torch::Tensor& episode);
  // Begins episode `next_episode` where `begins` [E] is set.
  void Begin(const torch::Tensor& begins);
  void MeasureSeparation();

  std::pair<torch::Tensor, torch::Tensor> Velocity(const torch::Tensor& action) const;
  // Marks cells as visited and returns each UAV's reward for it, [E, N].
  torch::Tensor Visit(const torch::Tensor& cell, const torch::Tensor& row, const torch::Tensor& visits);
  torch::Tensor Metrics() const;
  void WriteObs(torch::Tensor obs, const torch::Tensor& worlds) const override {
    sight_.WriteObs(state_, worlds, squares_, std::move(obs));
  }
  void WriteState(torch::Tensor state, const torch::Tensor& worlds) const override {
    sight_.WriteState(state_, worlds, squares_, std::move(state));
  }

  // Constant after construction.
  const Options options_;
  const UavLayout layout_;
  EnvSpec spec_;
  const int64_t envs_, uavs_;  // E, N
  const torch::Device device_;
  const TensorPhilox philox_;
  const TensorArena arena_;
  const TensorSight sight_;
  const torch::Tensor worlds_, env_index_;  // int64 [E], from 0 and run-wide
  const torch::Tensor team_;                // N, a divisor.

  int64_t prepared_per_step_;
  TensorUavState state_;
  torch::Tensor ended_;                       // bool [E], by the last Advance.
  torch::Tensor missed_;                      // bool []
  torch::Tensor squares_;                     // PairSquares of the current state; undefined = not computed.
  mutable std::unique_ptr<UavWorld> native_;  // Used by FinishMetrics, made at its first call.
  Snapshot before_;                           // State at BeginRollout, unless all maps are made in each step.
  int64_t prepared_before_ = 0;               // Not 0: a rollout that missed a map is being repeated, with all maps.
};

// For MakeTensorEnv. The worlds make some of the next maps in each step.
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorUavs(UavTask task, const TensorEnv::Options& options,
                                                          const UavOptions& uav);
template <UavTask task>
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorUavs(const TensorEnv::Options& options,
                                                          const EnvOptions& env_options) {
  return MakeTensorUavs(task, options, env_options.uav);
}

}  // namespace skein
