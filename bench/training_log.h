// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "skein/v1/config.pb.h"

namespace skein {

// A run's steady state from its metrics.jsonl: from the end of the second iteration, when everything has been started,
// connected and allocated, to the end of the last but one, since the last iteration has nothing to overlap with.
struct SteadyState {
  uint64_t iterations = 0;
  uint64_t env_steps = 0;
  uint64_t samples = 0;  // Env steps of agents whose alive flag is set.
  double seconds = 0;
  Json learner_seconds = Json::object();  // By stage, as the learner names them.
  Json actor_seconds = Json::object();    // By stage, summed over runners.

  // CPU time of the update, if the learner records it, else its wall time, per env step.
  double update_seconds_per_env_step() const;
};

// Reads the text of a metrics.jsonl. DataLoss: a line is not JSON or lacks a number. InvalidArgument: it has fewer than
// kMinIterations lines.
inline constexpr int kMinIterations = 4;
absl::StatusOr<SteadyState> ReadTrainingLog(const std::string& text);

// The share of an iteration in which neither the runners produced data nor the learner trained: wire, serialisation,
// waiting for both. Not below 0. `runners`: runners that can work at once.
// Modes on_policy and on_device: wall time minus collecting (runners' time divided by their number) minus updating; on
// a device, time in which the host waits for the device counts as collecting.
// Modes overlapped and async: the share of their time that runners waited, by their own record, or wall time minus
// updating if that is less. What runners collect between two lines of the log is not what is trained on between them,
// so collecting cannot be subtracted.
double OverheadShare(const SteadyState& figures, double runners, v1::SyncMode mode);

}  // namespace skein
