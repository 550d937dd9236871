// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scaling_analysis.h"
#include "bench/scaling_training.h"

// `skein bench scaling`: measures training with several numbers of runners and environments, and writes a report.
namespace skein {

struct ScalingOptions {
  TrainingSetup setup;
  std::vector<ScalingPoint> grid;  // 1x1 first.
  std::string out;                 // Folder of the results.
  bool resume = false;             // Continue with the existing results.
  bool limit = true;               // Find the physical limit.
  std::string json_path;           // A second path for results.json; empty = none.
};

// Measures the configurations one after the other and writes results.json after each; then report.md.
//   grid -> MeasureTraining, LimitFinder -> results.json -> Analyze -> report.md
// `say` receives a line of progress now and then. All configurations are checked before the first is measured.
// InvalidArgument, NotFound: the configuration. AlreadyExists: there are results and `resume` is not set.
// FailedPrecondition: those are of another study (names the first difference). Cancelled: `stop` returned true;
// finished measurements are kept. DataLoss: results.json is damaged. PermissionDenied, ResourceExhausted: the folder.
// Others as MeasureTraining.
absl::StatusOr<ScalingAnalysis> RunScalingStudy(const ScalingOptions& options, const StopRequested& stop,
                                                const std::function<void(const std::string&)>& say);

// The configuration of a study as results.json stores it. `config` is the resolved configuration without sizes.
nlohmann::ordered_json StudyConfigJson(const ScalingOptions& options, const v1::RunConfig& config);

// Reads an earlier results.json into *results. REQUIRES: results->config is set. Errors as above.
absl::Status LoadResults(const std::string& path, ScalingResults* results);

}  // namespace skein
