// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "launch/launch_plan.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Options of every verb of `skein bench`.
struct BenchOptions {
  std::string config_path;  // Empty = none.
  std::string env_id;       // Not of verbs without an environment.
  std::optional<uint64_t> seed;
  std::vector<std::string> overrides;  // "a.b=c", applied after all other flags.
  int rounds = 5;
  double seconds = 2;     // Of each measurement; a round has two.
  std::string json_path;  // Empty = none; "-" = standard output.
};

void AddBenchFlags(CLI::App* verb, BenchOptions* options);
// All of these but --env.
void AddMeasuringFlags(CLI::App* verb, BenchOptions* options);
// --threads or --runners: number that work in parallel; default: one for each core.
void AddParallelFlag(CLI::App* verb, const std::string& flag, const std::string& help, std::string* value);

// The configuration with flags and defaults applied, for verbs that start no run: rollout.num_envs may be 0, the name
// empty. InvalidArgument, NotFound: a bad flag or file, or an unknown environment.
absl::StatusOr<v1::RunConfig> ReadBenchConfig(const BenchOptions& options);

// Whether the run's algorithm searches over directions. Errors as AlgorithmOverrides.
absl::StatusOr<bool> SearchesDirections(const BenchOptions& options);

// Of these settings of an algorithm and their values the ones that the run's algorithm has, as overrides such as
// "ppo.epochs=1". Errors as ReadBenchConfig, but nothing is validated.
absl::StatusOr<std::vector<std::string>> AlgorithmOverrides(
    const BenchOptions& options, const std::vector<std::pair<std::string, int64_t>>& settings);

// The same for a run of `runners` runners ("auto": one for each core), resolved and checked as `skein train` does.
absl::StatusOr<LaunchPlan> PlanBenchRun(const BenchOptions& options, const std::string& runners);

// Checks that `path` (empty = none) can be written; leaves no file behind. PermissionDenied: it cannot.
absl::Status CheckWritable(const std::string& path);

}  // namespace skein
