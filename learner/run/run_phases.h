// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "learner/report/progress.h"
#include "learner/run/trainer.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The phases of a run (base/config/phases.h) at the learner.   env steps -> Enter -> settings of the next update
// Environments get the settings of their phase with the tickets (CollectedIterations). Not thread-safe.
class RunPhases {
 public:
  // `config` must outlive this.
  explicit RunPhases(const v1::RunConfig& config) : config_(config) {}

  // The next update begins with `env_steps` trained: gives the trainer the settings of that phase, and says in reports
  // and in the log which it is. No effect in a run without phases.
  void Enter(uint64_t env_steps, Trainer* trainer, ProgressTracker* progress);

 private:
  const v1::RunConfig& config_;
  std::optional<uint32_t> phase_;  // In force; nullopt: before the first update.
};

}  // namespace skein
