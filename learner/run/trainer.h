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
#include "base/config/direction_rules.h"
#include "env/env.h"
#include "learner/algorithm/update_stats.h"
#include "learner/algorithm/watch_rule.h"
#include "learner/collect/ticket_state.h"
#include "learner/report/episode_window.h"
#include "learner/report/update_samples.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "skein/v1/status.pb.h"
#include "skein/v1/tensor.pb.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/columns.h"

// Runs the configured algorithm for the training loop, which sees no tensors.
//   Columns -> Trainer -> UpdateStats, PolicySnapshot, checkpoint
namespace skein {

class Collective;

// The part of a checkpoint that is not learned: counts, environment states, the step account and what is reported.
struct RunRecord {
  uint64_t env_steps = 0;
  uint64_t iteration = 0;
  uint64_t episodes = 0;
  TicketState state;  // From which all environments of the run continue; empty = no iteration is finished.
  v1::StepAccount account;
  EpisodeWindow last_episodes;
  std::string changes;  // Settings that a callback has changed, as a JSON object {"ppo.lr": 1e-4}; empty = none.
};

// Runs the algorithm and hides Torch: takes Columns, returns PolicySnapshots, saves and loads checkpoints.
// Not thread-safe; all calls from the constructing thread, whose number of Torch threads is set as configured.
// Torch's exceptions are caught here and become Internal.
// With several ranks, all ranks make the same calls of Make, Update and Resume; these have Collective's errors too.
class Trainer {
 public:
  // `collective` must outlive this; null: a single rank. `local_rank` selects the GPU if learner.device is auto.
  // InvalidArgument, FailedPrecondition: learner.device, as ParseTrainingDevice. ResourceExhausted: no memory for the
  // networks.
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(const v1::RunConfig& config, const EnvSpec& spec,
                                                       Collective* collective = nullptr, int local_rank = 0);
  ~Trainer();

  // See Algorithm::SetSettings.
  void SetSettings(const v1::RunConfig& config);

  // See Algorithm::WatchRules.
  std::vector<WatchRule> WatchRules() const;

  // Trains on one iteration (see Algorithm::Update). `batch` is read in place. With several ranks, each passes its own
  // columns, maybe none. They are at `column_offset` among all ranks' `total_columns` (0 = only these), in rank order.
  absl::StatusOr<UpdateStats> Update(Columns* batch, double progress, uint64_t iteration, int64_t column_offset = 0,
                                     int64_t total_columns = 0);

  // Mode on_device: the trainer collects its own data with environments first_env .. first_env + share_envs - 1 of the
  // run. They continue from `state` of share_envs rows or, if it has no env_state, begin their first episodes. A search
  // plays its directions instead and reads none of the arguments. InvalidArgument: the environment has no tensor form,
  // or the state is not valid for it.
  absl::Status BeginOnDevice(uint32_t first_env, uint32_t share_envs, const TicketState& state);
  struct Collected {
    int64_t steps = 0, share_envs = 0, columns = 0;
    uint64_t env_steps = 0;
    int64_t samples = 0;                 // Agent steps whose alive flag is set.
    uint64_t failed_episodes = 0;        // In none of the following.
    std::vector<double> episode_return;  // [episodes]
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]
    v1::StageSeconds stage_seconds;
  };
  // Steps the environments through one iteration with the newest policy, or with its `directions` in a search.
  // ResourceExhausted: out of memory with a single direction. REQUIRES: BeginOnDevice.
  absl::StatusOr<Collected> CollectOnDevice(uint64_t iteration, const DirectionSettings& directions = {});
  // As Update, on the data of the last CollectOnDevice.
  absl::StatusOr<UpdateStats> UpdateOnDevice(double progress, uint64_t iteration, int64_t column_offset,
                                             int64_t total_columns);
  // Where the environments and the policy's memory continue, of share_envs rows; empty in a search, of which each
  // iteration begins new episodes.
  absl::StatusOr<TicketState> StateOnDevice() const;

  // At most kMaxSampled samples of this rank from the last update's input, evenly spaced.
  static constexpr int64_t kMaxSampled = 16384;
  // `batch`: the batch of that update, null if it was on the device. REQUIRES: there was an update.
  absl::StatusOr<UpdateSamples> LastSamples(Columns* batch) const;

  // See Algorithm::ParametersDigest.
  uint64_t ParametersDigest() const;
  // This rank's cost of gradient sums over the ranks since construction, as GradientReducer::Cost; zero for a single
  // rank. With learner.gradient_parts that of its first part.
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
  // the newest is. FailedPrecondition: it is of another environment, network or number of environments. With several
  // ranks, only rank 0 reads the folder and sends the state to the others. All return the same except warnings.
  absl::StatusOr<Resumed> Resume(const std::string& folder, bool newest_only = false);

  // Takes weights and normalisers, with learner.init_optimizer the optimizer's state too, of the checkpoint that
  // learner.init_from names: its folder, or a run's for its newest. NotFound: there is none. DataLoss: it is damaged.
  // FailedPrecondition: it is of another network (names the first tensor that differs), or its optimizer of another
  // algorithm. With several ranks, only rank 0 reads it and sends the state to the others.
  absl::Status InitFrom();

  // The learned state, kept in memory.
  struct State;
  absl::StatusOr<std::shared_ptr<const State>> Keep() const;
  // Continues from rank 0's `state` and `record`; those of other ranks are ignored. Returns rank 0's record. All ranks
  // must call it. FailedPrecondition: the state is of another network.
  absl::StatusOr<Resumed> TakeOver(const State* state, const Resumed& record);

 private:
  struct Impl;
  absl::StatusOr<Resumed> ResumeHere(const std::string& folder, bool newest_only);
  absl::StatusOr<Resumed> InitHere();
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
