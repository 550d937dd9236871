// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/process/shutdown.h"
#include "bench/options.h"

// skein bench learner --learners: measures the cost of training with several ranks.
namespace skein {

struct RankBenchOptions {
  BenchOptions bench;
  std::vector<int> learners;        // Numbers of ranks; empty = 1.
  std::vector<int64_t> parameters;  // Approximate network sizes; empty = the configuration's networks.
  // Samples of each learner in an update and in a gradient step. Default: the configuration's, divided by the largest
  // number of learners, so that these have them in total.
  std::optional<uint32_t> batch, minibatch;
};

// The configuration of one learner: its steps_per_iteration and minibatch_size as above. Errors as PlanBenchRun.
absl::StatusOr<v1::RunConfig> PlanRankBench(const RankBenchOptions& options);

// Measures every number of learners with every size of network, prints the table and writes --json. Errors as
// PlanRankBench, RankCrew and WriteReport.
absl::Status RunRankBench(const RankBenchOptions& options, const ShutdownSignal& shutdown);

}  // namespace skein
