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

// What was measured of one configuration, before anything is computed from it.
struct ScalingMeasurement {
  ScalingPoint point;
  uint32_t actors = 1;               // Actor processes.
  uint64_t steps_per_iteration = 0;  // Env steps.
  IterationTimes times;
  std::vector<UsageSample> usage;
};

// The fastest that this machine steps the environment with a number of threads and nothing else to do.
struct PhysicalLimit {
  std::optional<double> env_steps_per_second;
  std::string how;  // Where it comes from, or why there is none.
};

// All that a study has found so far. What results.json holds.
struct ScalingResults {
  nlohmann::ordered_json machine;               // As DescribeMachine(), with the GPUs' names.
  nlohmann::ordered_json config;                // What was asked for: equal for studies that can be continued.
  std::string gpu_reason;                       // Why there are no GPU figures; empty if there are.
  std::vector<ScalingMeasurement> rows;         // In the order of the grid; 1x1 first.
  std::map<std::string, PhysicalLimit> limits;  // By ScalingPoint::name().
};

nlohmann::ordered_json ToJson(const ScalingMeasurement& row);
// DataLoss: not what ToJson wrote.
absl::StatusOr<ScalingMeasurement> MeasurementFromJson(const nlohmann::ordered_json& json);

}  // namespace skein
