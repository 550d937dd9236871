// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_phases.h"

#include "base/config/phases.h"
#include "base/telemetry/log.h"

namespace skein {

void RunPhases::Enter(uint64_t env_steps, Trainer* trainer, ProgressTracker* progress) {
  if (config_.phases_size() == 0) return;
  const uint32_t phase = PhaseAt(config_, env_steps), phases = static_cast<uint32_t>(config_.phases_size()) + 1;
  trainer->SetSettings(ConfigOfPhase(config_, phase));  // The trainer may be a new one.
  progress->SetPhase(phase + 1, phases);
  if (phase_ == phase) return;
  phase_ = phase;
  const std::string settings = DescribePhase(config_, phase);
  spdlog::info("phase {} of {} at env step {}: {}", phase + 1, phases, env_steps,
               settings.empty() ? "the run's own settings" : settings);
}

}  // namespace skein
