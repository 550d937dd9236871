// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "CLI/App.hpp"
#include "bench/verbs.h"

namespace skein {

// The verb of `skein-bench` that RankCrew starts, hidden from people: one learner rank.
constexpr char kRankWorkerVerb[] = "learner-rank";

// Its flags.
struct RankWorkerOptions {
  std::string config_path;    // A whole configuration, YAML.
  std::string commands_path;  // A named pipe: "alone N" and "summing N" lines, N updates each. It ends with that.
  int rank = 0;
  int ranks = 1;
  int store_port = 0;
};

// It says on standard output, one line each: rank 0 the port of its store; then that it is ready; then what
// RankUpdates::Run returns for each command.
void AddRankWorker(CLI::App* app, BenchAction* action);

}  // namespace skein
