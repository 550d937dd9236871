// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scaling_analysis.h"
#include "bench/scaling_training.h"

namespace skein {

struct ScalingOptions {
  TrainingSetup setup;
  std::vector<ScalingPoint> grid;  // 1x1 first.
  std::string out;                 // Folder of the results.
  bool resume = false;             // Go on with the results that are there.
  bool limit = true;               // Find the physical limit.
  std::string json_path;           // Where else to write results.json; empty = nowhere.
};

// Measures configuration after configuration and writes results.json after each; then report.md.
//   grid -> MeasureTraining, LimitFinder -> results.json -> Analyze -> report.md
// `say` gets a line of progress now and then. All configurations are checked before the first is measured.
// InvalidArgument, NotFound: the configuration. AlreadyExists: there are results and `resume` is not set.
// FailedPrecondition: those are of another study (names the first difference). Cancelled: `stop` said so; what has
// been measured is kept. DataLoss: results.json is damaged. PermissionDenied, ResourceExhausted: the folder. Otherwise
// as MeasureTraining.
absl::StatusOr<ScalingAnalysis> RunScalingStudy(const ScalingOptions& options, const StopRequested& stop,
                                                const std::function<void(const std::string&)>& say);

// What a study was asked for, as results.json keeps it. `config` is the resolved configuration without sizes.
nlohmann::ordered_json StudyConfigJson(const ScalingOptions& options, const v1::RunConfig& config);

// Reads the measurements of an earlier results.json into *results, whose `config` must be set. Errors as above.
absl::Status LoadResults(const std::string& path, ScalingResults* results);

}  // namespace skein
