// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env.h"
#include "learner/algorithm/update_stats.h"
#include "learner/collect/ticket_state.h"
#include "learner/report/update_samples.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "skein/v1/status.pb.h"
#include "skein/v1/tensor.pb.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/columns.h"

namespace skein {

class Collective;

// Everything about a run, besides what is learned, that a checkpoint holds.
struct RunRecord {
  uint64_t env_steps = 0;
  uint64_t iteration = 0;
  uint64_t episodes = 0;
  TicketState state;  // Where all environments of the run go on; empty = no iteration is finished.
  v1::StepAccount account;
};

// The run's algorithm with Torch hidden behind it: Columns in, PolicySnapshot out, checkpoints both ways.
// Not thread-safe; all calls from the thread that constructed it, whose Torch threads are set as configured.
// Torch's exceptions end here: they become Internal.
// Of several ranks, all call Make, Update and Resume alike; these fail as Collective's calls do, too.
class Trainer {
 public:
  // `collective` must outlive it; null: a single rank. `local_rank` chooses the GPU where learner.device is auto.
  // InvalidArgument, FailedPrecondition: learner.device, as ParseTrainingDevice. InvalidArgument: the policy has a
  // memory.
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(const v1::RunConfig& config, const EnvSpec& spec,
                                                       Collective* collective = nullptr, int local_rank = 0);
  ~Trainer();

  // One iteration (see Algorithm::Update). `batch` is read in place. Of several ranks, each gives its own columns, in
  // order of rank, maybe none: those from `column_offset` on among all ranks' `total_columns` (0 = only these).
  absl::StatusOr<UpdateStats> Update(Columns* batch, double progress, uint64_t iteration, int64_t column_offset = 0,
                                     int64_t total_columns = 0);

  // Mode on_device: what there is to train on is made here, by environments first_env .. first_env + num_envs - 1 of
  // the run, from `env_state` [num_envs, S] on or from their first episodes. InvalidArgument: the environment has no
  // tensor form, or the state is not one of its.
  absl::Status BeginOnDevice(uint32_t first_env, uint32_t num_envs, const std::optional<v1::Tensor>& env_state);
  struct Collected {
    int64_t steps = 0, num_envs = 0, columns = 0;
    int64_t samples = 0;                 // Steps of agents that took part.
    std::vector<double> episode_return;  // [episodes]
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]
    v1::StageSeconds stage_seconds;
  };
  // Steps the environments through one iteration with the newest policy. REQUIRES: BeginOnDevice.
  absl::StatusOr<Collected> CollectOnDevice(uint64_t iteration);
  // As Update, on what was collected last.
  absl::StatusOr<UpdateStats> UpdateOnDevice(double progress, uint64_t iteration, int64_t column_offset,
                                             int64_t total_columns);
  // Float64 [num_envs, S], where the environments are.
  absl::StatusOr<v1::Tensor> EnvStateOnDevice() const;

  // What the last update was given, at most kMaxSampled steps of agents that took part, evenly spread; of this rank.
  static constexpr int64_t kMaxSampled = 16384;
  // `batch`: the one of that update, null if it was on the device. REQUIRES: there was an update.
  absl::StatusOr<UpdateSamples> LastSamples(Columns* batch) const;

  // See Algorithm::ParametersDigest.
  uint64_t ParametersDigest() const;
  // What summing gradients over ranks has cost this one since construction: GradientReducer::Cost; zero for a single
  // rank.
  struct Reduction {
    int64_t all_reduces = 0;
    int64_t bytes_sent = 0;
    absl::Duration exposed, all_reducing;
  };
  Reduction reduction() const;
  absl::StatusOr<std::shared_ptr<const v1::PolicySnapshot>> Snapshot(uint64_t version) const;

  struct Saved {
    std::string path;
    std::string digest;
  };
  // Errors as SaveCheckpoint.
  absl::StatusOr<Saved> Save(const std::string& folder, const RunRecord& record) const;

  struct Resumed {
    RunRecord record;
    Saved checkpoint;
    std::vector<std::string> warnings;
  };
  // Restores the newest complete checkpoint. NotFound: there is none. DataLoss: all are damaged, or `newest_only` and
  // the newest is. FailedPrecondition: it is of another environment, network or number of environments. Of several
  // ranks, rank 0 alone looks into the folder and tells the others, which all return the same but the warnings.
  absl::StatusOr<Resumed> Resume(const std::string& folder, bool newest_only = false);

  // All that is learned, in memory.
  struct State;
  absl::StatusOr<std::shared_ptr<const State>> Keep() const;
  // Goes on from rank 0's `state` and `record`; those of others are not looked at. Returns rank 0's record. All ranks
  // call it alike. FailedPrecondition: the state is of another network.
  absl::StatusOr<Resumed> TakeOver(const State* state, const Resumed& record);

 private:
  struct Impl;
  absl::StatusOr<Resumed> ResumeHere(const std::string& folder, bool newest_only);
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
