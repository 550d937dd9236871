// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scaling_grid.h"
#include "bench/scaling_stages.h"
#include "bench/scaling_usage.h"
#include "nlohmann/json.hpp"

namespace skein {

// The measurements of one configuration, before anything is computed from them.
struct ScalingMeasurement {
  ScalingPoint point;
  uint32_t actors = 1;               // Actor processes.
  uint64_t steps_per_iteration = 0;  // Env steps.
  std::vector<std::string> sizes;    // As SizeSettings().
  IterationTimes times;
  std::vector<UsageSample> usage;
};

// The highest rate at which this machine steps the environment on a number of threads that do nothing else.
struct PhysicalLimit {
  std::optional<double> env_steps_per_second;
  std::string how;  // How it was found, or why there is none.
};

// All results of a study so far: the content of results.json.
struct ScalingResults {
  nlohmann::ordered_json machine;               // As DescribeMachine(), with the GPUs' names.
  nlohmann::ordered_json config;                // Of the study: must be equal to continue it.
  std::string gpu_reason;                       // Why there is no GPU usage; empty if there is.
  std::vector<ScalingMeasurement> rows;         // In the order of the grid; 1x1 first.
  std::map<std::string, PhysicalLimit> limits;  // By ScalingPoint::name().
};

nlohmann::ordered_json ToJson(const ScalingMeasurement& row);
// Parses what ToJson writes. DataLoss: anything else.
absl::StatusOr<ScalingMeasurement> MeasurementFromJson(const nlohmann::ordered_json& json);

}  // namespace skein
