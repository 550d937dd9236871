// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "learner/report/progress.h"
#include "learner/run/trainer.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The phases of a run (base/config/phases.h) and what its callback has changed, at the learner.
//   env steps, changes -> Enter -> settings of the next update
// Environments get the settings of their phase with the tickets (CollectedIterations). Not thread-safe.
class RunPhases {
 public:
  // `config` must outlive this.
  explicit RunPhases(const v1::RunConfig& config) : config_(config) {}

  // The next update begins where `record` ends: gives the trainer the settings of that phase, with record.changes in
  // their place, and says in reports and in the log which it is. No effect in a run with neither.
  // FailedPrecondition: the changes do not fit the run's settings.
  absl::Status Enter(const RunRecord& record, Trainer* trainer, ProgressTracker* progress);

 private:
  absl::Status Read(const std::string& changes);

  const v1::RunConfig& config_;
  std::optional<uint32_t> phase_;  // In force; nullopt: before the first update.
  std::string changes_;            // In force, as RunRecord::changes.
  v1::RunConfig changed_;          // The settings in them.
};

}  // namespace skein
