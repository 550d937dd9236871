// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "skein/v1/config.pb.h"

namespace skein {

// What a run's metrics.jsonl says about its steady state: from the end of its second iteration, by which everything has
// been started, connected and allocated, to the end of the last but one, since the last has nothing to overlap with.
struct TrainingFigures {
  uint64_t iterations = 0;
  uint64_t env_steps = 0;
  uint64_t samples = 0;  // Steps of agents that took part.
  double seconds = 0;
  Json learner_seconds = Json::object();  // By stage, as the learner names them.
  Json actor_seconds = Json::object();    // By stage, summed over runners.

  // The update's own processor time if the learner says it, else its wall time, per env step.
  double update_seconds_per_env_step() const;
};

// Reads the text of a metrics.jsonl. DataLoss: a line is no JSON or lacks a figure. InvalidArgument: it has fewer than
// kMinIterations lines.
inline constexpr int kMinIterations = 4;
absl::StatusOr<TrainingFigures> ReadTrainingLog(const std::string& text);

// The part of an iteration in which neither the runners made data nor the learner trained: wire, serialisation, waiting
// for both. On-policy and on a device: what collecting (runners' time over their number) and updating leave of the wall
// time; what a device has the host wait for is collecting. Overlapped and asynchronous: the part of their time that
// runners waited, as they say themselves, since what they collected between two lines of the log is not what is trained
// on between them; or what updating leaves of the wall time, if that is less. Not below 0. `runners` are those that can
// work at once.
double OverheadShare(const TrainingFigures& figures, double runners, v1::SyncMode mode);

}  // namespace skein
