// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_phases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/config/phases.h"
#include "base/config/setting_changes.h"
#include "base/telemetry/log.h"

namespace skein {

absl::Status RunPhases::Read(const std::string& changes) {
  if (changes == changes_) return absl::OkStatus();
  v1::RunConfig changed;
  if (!changes.empty()) {
    auto read = ReadChanges(config_, changes);
    if (!read.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("what a callback has changed does not fit the run's settings: ", read.status().message()));
    }
    changed = *std::move(read);
  }
  changes_ = changes;
  changed_ = std::move(changed);
  spdlog::info("settings that a callback has changed: {}", DescribeSettings(changed_));
  return absl::OkStatus();
}

absl::Status RunPhases::Enter(const RunRecord& record, Trainer* trainer, ProgressTracker* progress) {
  const bool changed = !changes_.empty() || !record.changes.empty();
  if (absl::Status s = Read(record.changes); !s.ok()) return s;
  if (config_.phases_size() == 0 && !changed) return absl::OkStatus();
  const uint32_t phase = PhaseAt(config_, record.env_steps), phases = static_cast<uint32_t>(config_.phases_size()) + 1;
  trainer->SetSettings(WithSettings(ConfigOfPhase(config_, phase), changed_));  // The trainer may be a new one.
  if (phases == 1) return absl::OkStatus();
  progress->SetPhase(phase + 1, phases);
  if (phase_ == phase) return absl::OkStatus();
  phase_ = phase;
  const std::string settings = DescribePhase(config_, phase);
  spdlog::info("phase {} of {} at env step {}: {}", phase + 1, phases, record.env_steps,
               settings.empty() ? "the run's own settings" : settings);
  return absl::OkStatus();
}

}  // namespace skein
