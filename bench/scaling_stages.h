// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Where the time of training goes, by the learner's own record.   metrics.jsonl -> IterationTimes
namespace skein {

// Of successive iterations. Stages have the names of metrics.jsonl.
struct IterationTimes {
  std::vector<double> seconds;            // Wall time of each.
  uint64_t env_steps = 0;                 // Of all together.
  std::map<std::string, double> learner;  // Seconds by stage in all of them: receive, admit, barrier, update, ...
  std::map<std::string, double> runners;  // The same summed over runners: env_step, inference, build, wait.

  double total_seconds() const;
};

// Reads lines of metrics.jsonl, the first of which ends the last iteration that is not measured. DataLoss: not what
// the learner writes (names the line's number among them). FailedPrecondition: fewer than two lines.
absl::StatusOr<IterationTimes> ReadIterationTimes(const std::vector<std::string>& lines);

// Shares of one iteration's wall time, each 0-1 unless it says otherwise.
struct StageShares {
  // Of the runners' time, runners x wall time: sums to 1.
  double physics = 0;     // Stepping environments, as fast as the baseline steps them.
  double contention = 0;  // What stepping took longer than that: too few cores, caches, memory.
  double inference = 0;   // The policy's forward pass and the noise.
  double build = 0;       // Writing the fragment.
  double waiting = 0;     // For tickets, policies, and the learner.
  // Of the training thread's time: sums to 1.
  double update = 0;
  double publish = 0;
  double collecting = 0;  // Waiting until the iteration is complete.
  double other = 0;       // Its books and its log.
  // Threads of the learner beside it: receiving and checking batches, copying them into place. Of the wall time; more
  // than 1 if several of them are busy.
  double transport = 0;

  // What in mode on_policy nothing else goes on beside: the serial learner.
  double serial() const { return update + publish + other; }
  // What of the runners' waiting that does not explain: messages, synchronisation, an uneven finish. 0 or more.
  double coordination() const;
};

// `baseline_step_seconds` is what one env step takes on an idle machine; 0 = not known, then
// contention is 0. REQUIRES: times hold an iteration, runners > 0.
StageShares ComputeShares(const IterationTimes& times, uint32_t runners, double baseline_step_seconds);

// Seconds of stepping per env step; 0 if the record has none.
double StepSeconds(const IterationTimes& times);

}  // namespace skein
