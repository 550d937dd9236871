// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/run/failure_streak.h"
#include "learner/run/run_context.h"
#include "learner/run/trainer.h"

namespace skein {

// Decides when the run's checkpoints are written, and writes them. Only for the training thread.
class RunCheckpoints {
 public:
  explicit RunCheckpoints(const RunContext& context);  // Must outlive this.

  // Restores the newest checkpoint as --resume says and returns its record; an empty record if there is none. Then the
  // run begins, with the weights that learner.init_from names if it does. Errors as Trainer::Resume, Trainer::InitFrom.
  absl::StatusOr<RunRecord> Resume(Trainer* trainer);
  // The ranks continue from a state in memory at `env_steps`; `newest`: the newest checkpoint, from place 0.
  void GoOnFrom(const Trainer::Saved& newest, uint64_t env_steps);

  bool Due(uint64_t env_steps) const { return env_steps >= next_ && env_steps < context_.config.total_steps(); }
  // Writes a checkpoint unless one of this state exists already. A failure is counted and logged.
  absl::Status Save(const Trainer& trainer, const RunRecord& record);
  // Attempts that failed since the last one that did not.
  const FailureStreak& failures() const { return failures_; }
  // The next checkpoint is due one interval after `env_steps`.
  void Schedule(uint64_t env_steps) { next_ = env_steps + context_.config.checkpoint().interval_steps(); }

  const Trainer::Saved& newest() const { return newest_; }

 private:
  const RunContext& context_;
  const std::string folder_;
  uint64_t saved_env_steps_ = 0;
  uint64_t next_ = 0;
  Trainer::Saved newest_;
  FailureStreak failures_;
};

}  // namespace skein
