// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/process/shutdown.h"
#include "bench/options.h"

// skein bench learner --learners: what it costs that several ranks train together.
namespace skein {

struct RankBenchOptions {
  BenchOptions bench;
  std::vector<int> learners;        // Numbers of ranks; empty = 1.
  std::vector<int64_t> parameters;  // Sizes of the networks, about; empty = the configuration's networks.
  // Samples that each learner has in an update, and in a gradient step; default: the configuration's, shared among the
  // largest number of learners, so that these together have it.
  std::optional<uint32_t> batch, minibatch;
};

// The configuration of one learner: its steps_per_iteration and minibatch_size as above. Errors as PlanBenchRun.
absl::StatusOr<v1::RunConfig> PlanRankBench(const RankBenchOptions& options);

// Measures every number of learners with every size of network, prints the table and writes --json. Errors as
// PlanRankBench, RankCrew's and WriteReport.
absl::Status RunRankBench(const RankBenchOptions& options, const ShutdownSignal& shutdown);

}  // namespace skein
