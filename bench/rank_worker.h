// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "bench/rank_place.h"
#include "bench/statistics.h"
#include "bench/verbs.h"

// Runs one learner rank of `skein bench learner --learners` as a process of its own.
namespace skein {

// The verbs of `skein-bench` that RankCrew starts for one rank, of a learner and of `skein fit`; hidden in --help.
constexpr char kLearnerRankVerb[] = "learner-rank";
constexpr char kFitRankVerb[] = "fit-rank";

// Their flags.
struct RankWorkerOptions {
  std::string config_path;    // A whole configuration, YAML.
  std::string data_path;      // Folder of the data, where there are any.
  std::string commands_path;  // A named pipe with lines "alone N" and "summing N", N updates each. Ends at its end.
  int rank = 0;
  int ranks = 1;
  int store_port = 0;
};

// Does so many updates and returns what was measured.
using RankWork = std::function<absl::StatusOr<Json>(RankMode mode, int64_t updates)>;
// Reads the configuration, connects, and returns what then does the work.
using MakeRankWork = std::function<absl::StatusOr<RankWork>(const RankWorkerOptions& options, const RankPlace& place)>;

// Adds the verb, which prints on standard output, one line each: on rank 0 the port of its store; then that it is
// ready; then for each command the result.
void AddRankWorker(CLI::App* app, const char* verb, MakeRankWork make, BenchAction* action);

}  // namespace skein
