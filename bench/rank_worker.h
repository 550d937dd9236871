// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "CLI/App.hpp"
#include "bench/verbs.h"

// Runs one learner rank of `skein bench learner --learners` as a process of its own.
namespace skein {

// The verb of `skein-bench` that RankCrew starts for one learner rank; hidden in --help.
constexpr char kRankWorkerVerb[] = "learner-rank";

// Its flags.
struct RankWorkerOptions {
  std::string config_path;    // A whole configuration, YAML.
  std::string commands_path;  // A named pipe with lines "alone N" and "summing N", N updates each. Ends at its end.
  int rank = 0;
  int ranks = 1;
  int store_port = 0;
};

// Prints on standard output, one line each: on rank 0 the port of its store; then that it is ready; then for each
// command the result of RankUpdates::Run.
void AddRankWorker(CLI::App* app, BenchAction* action);

}  // namespace skein
