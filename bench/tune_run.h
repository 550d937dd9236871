// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/telemetry/gpu_monitor.h"
#include "bench/scaling_training.h"
#include "bench/tune.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Options of `skein tune`.
struct TuneOptions {
  TrainingSetup setup;
  std::string device;                // Empty = the configuration's.
  uint64_t steps_per_iteration = 0;  // 0 = the configuration's. Not read by a search over directions.
  bool batch = false;                // Try other minibatches and longer iterations, too.
};

// A change beside the sizes.
struct BatchTrial {
  std::string setting;  // "ppo.minibatch_size=16384"
  bool learned = true;  // It changes what is learned, too.
  TuneTrial trial;
};

// Measures by training for a few iterations, one trial after the other.   TuneSettings -> skein train -> TuneTrial
// `say` gets a line of progress for each. Not thread-safe.
class TuneRun {
 public:
  using Say = std::function<void(const std::string& line)>;
  // Of `options` and `config`, its resolved configuration. `folder` is for temporary files. All must outlive this.
  TuneRun(const TuneOptions& options, const v1::RunConfig& config, std::string folder, StopRequested stop, Say say);

  // The fastest settings with smaller micro-batches, other minibatches, twice the steps of an iteration and, on a GPU,
  // other arithmetic. Trials that fail are left out. Errors: Cancelled.
  absl::StatusOr<std::vector<BatchTrial>> TryBatches(const TuneSettings& best);
  // The settings with these overrides. Errors as MeasureRun.
  absl::StatusOr<TuneTrial> Measure(const TuneSettings& settings, const std::vector<std::string>& with);

  // Why a run with these settings cannot be, or OK. Errors as PlanLaunch.
  absl::Status Check(const TuneSettings& settings) const;

 private:
  LaunchOptions Options(const TuneSettings& settings, const std::vector<std::string>& with) const;

  const TuneOptions& options_;
  const v1::RunConfig& config_;
  const std::string folder_;
  const StopRequested stop_;
  const Say say_;
  const std::unique_ptr<GpuMonitor> gpus_;  // Null: none.
};

// Of each setting that was tried beside the sizes, the value that was worth it most.
std::vector<std::string> WorthIt(const TuneTrial& best, const std::vector<BatchTrial>& batches);

// Env steps a second for people: "85,123".
std::string FormatRate(const TuneTrial& trial);

}  // namespace skein
