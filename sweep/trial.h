// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/space.h"

// Trials of a sweep: configuration, state and results, as the journal has them.
namespace skein {

// Optuna's numbers of the same states.
enum class TrialState { kRunning = 0, kComplete = 1, kPruned = 2, kFailed = 3 };

// One configuration that a sweep tries: as many trainings as seeds_per_trial says. All of it is in the journal.
// A trial's rungs are numbered from 0; the last one is the end of its training.
struct Trial {
  uint32_t number = 0;
  Point point;
  TrialState state = TrialState::kRunning;  // Also while it is paused at a rung.
  uint32_t rung = 0;                        // It may train up to this one.
  // By rung: the mean over its seeds. Higher is better, whatever the goal; minus infinity: there was no value yet.
  std::map<uint32_t, double> results;
  std::vector<double> values;  // Of the last of them, by seed; with the same sign. NaN: none.
  uint32_t group = 0;          // Hyperband: its bracket. Population: the member.
  // Population: it began as a copy of `trial` at `rung`, and has no results up to there.
  struct Origin {
    uint32_t trial = 0, rung = 0;
  };
  std::optional<Origin> origin;
  uint32_t failures = 0;  // Of its trainings, in all.
  double core_seconds = 0;
  std::string why;  // It was stopped or has failed.

  bool has_result(uint32_t at) const { return results.count(at) > 0; }
  bool waits() const { return state == TrialState::kRunning && has_result(rung); }
};

}  // namespace skein
