// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/checkpoint_info.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/fit.pb.h"

// The runs in a folder, from their files alone: config.yaml, metrics.jsonl, checkpoints, eval.json.
namespace skein {

struct RunListing {
  std::string name, path;
  v1::RunConfig config;              // With defaults.
  std::optional<v1::FitConfig> fit;  // With defaults, instead of `config`: a run of `skein fit`.
  bool running = false;              // Its folder is locked.
  bool finished = false;
  uint64_t env_steps = 0, total_steps = 0;    // Of `skein fit`: sequences. A total of 0: not known yet.
  double seconds = 0;                         // Of its last session.
  std::optional<double> episode_return;       // The last mean.
  std::optional<double> best_episode_return;  // The largest mean.
  std::optional<double> evaluation;           // Mean return of the final evaluation.
  std::optional<double> held_out_loss;        // Of `skein fit`: the last one, and the smallest.
  std::optional<double> best_held_out_loss;
  std::optional<CheckpointInfo> checkpoint;  // The newest one.
  uint64_t bytes = 0;
  absl::Time changed;  // When its metrics or its settings were last written.

  // What is trained, on what: an algorithm and an environment, or "fit" and "sequences".
  std::string algorithm() const;
  std::string task() const;
  uint64_t seed() const { return fit ? fit->seed() : config.seed(); }
};

// Names of the runs in `runs_dir`, in alphabetical order: its folders with a config.yaml, or with a metrics.jsonl whose
// config.yaml is lost. NotFound: no such folder.
absl::StatusOr<std::vector<std::string>> RunNames(const std::string& runs_dir);
// A run of which nothing is read: only name, path, running and bytes. NotFound: no such run (names the nearest one).
// InvalidArgument: `name` is a path.
absl::StatusOr<RunListing> FindRun(const std::string& runs_dir, const std::string& name);
// All of it. Errors as FindRun. DataLoss: its config.yaml cannot be read, or names no environment.
absl::StatusOr<RunListing> ReadRun(const std::string& runs_dir, const std::string& name);

// The numbers of a run under `metric`, "a.b" for one in an object, with the env steps, or sequences, at which they were
// taken. Lines
// without it are skipped. NotFound: it has no such metric (names those that it has), or no metrics.
absl::StatusOr<std::vector<std::pair<double, double>>> ReadCurve(const RunListing& run, const std::string& metric);

// Settings in which not all runs are the same: value by path, for each run.
std::vector<std::pair<std::string, std::vector<std::string>>> DifferentSettings(const std::vector<RunListing>& runs);

// Removes the run's folder. FailedPrecondition: it is running. PermissionDenied, ResourceExhausted: it cannot be
// removed.
absl::Status RemoveRun(const RunListing& run);

}  // namespace skein
