// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Splits training time by stage, from the learner's own record.   metrics.jsonl -> IterationTimes -> StageShares
namespace skein {

// Times of successive iterations. Stages have the names of metrics.jsonl.
struct IterationTimes {
  std::vector<double> seconds;            // Wall time of each.
  uint64_t env_steps = 0;                 // Of all together.
  std::map<std::string, double> learner;  // Seconds by stage in all of them: receive, admit, barrier, update, ...
  std::map<std::string, double> runners;  // The same summed over runners: env_step, inference, build, wait.

  double total_seconds() const;
};

// Reads lines of metrics.jsonl. The first line ends the last iteration before the measured ones. DataLoss: not what the
// learner writes (names the index of the line). FailedPrecondition: fewer than two lines.
absl::StatusOr<IterationTimes> ReadIterationTimes(const std::vector<std::string>& lines);

// Shares of one iteration's time, each 0-1 unless noted otherwise.
struct StageShares {
  // Of the runners' time (runners x wall time); these sum to 1.
  double physics = 0;     // Stepping environments at the baseline's speed.
  double contention = 0;  // Extra stepping time: too few cores, caches, memory.
  double inference = 0;   // The policy's forward pass and the noise.
  double build = 0;       // Writing the fragment.
  double waiting = 0;     // For tickets, policies, and the learner.
  // Of the training thread's time; these sum to 1.
  double update = 0;
  double publish = 0;
  double collecting = 0;  // Waiting until the iteration is complete.
  double other = 0;       // The rest: accounting and logging.
  // Other threads of the learner: receiving and checking fragments, copying them into place. A share of the wall time;
  // above 1 if several of them are busy.
  double transport = 0;

  // The learner's work that overlaps with nothing else in mode on_policy.
  double serial() const { return update + publish + other; }
  // The runners' waiting that serial() does not explain: messages, synchronisation, an uneven finish. >= 0.
  double coordination() const;
};

// `baseline_step_seconds`: time of one env step on an idle machine; 0 = not known, then contention is 0. REQUIRES:
// `times` hold an iteration, runners > 0.
StageShares ComputeShares(const IterationTimes& times, uint32_t runners, double baseline_step_seconds);

// Seconds of stepping per env step; 0 if the record has none.
double StepSeconds(const IterationTimes& times);

}  // namespace skein
