// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/scaling_result.h"

// Computes rows and recommendations from a study's measurements. Pure functions.
//   ScalingResults -> ScalingAnalysis -> report
namespace skein {

// One configuration. Shares are 0-1.
struct ScalingRow {
  ScalingPoint point;
  double seconds_mean = 0;       // Of an iteration.
  double seconds_deviation = 0;  // Standard deviation (n - 1) of the iterations; 0 for a single one.
  double env_steps_per_second = 0;
  double speed_up = 1;          // Env steps/s over those of 1x1; for equal iterations the inverse ratio of times.
  double efficiency = 1;        // Speed-up divided by environments.
  std::optional<double> limit;  // Env steps/s of the bare environments with that many threads.
  std::optional<double> limit_ratio;
  UsageSummary cpu;
  std::vector<double> cores;
  std::optional<UsageSummary> gpu;
  StageShares shares;
};

// A recommended row, if any, and the reason.
struct Recommendation {
  std::optional<size_t> row;
  std::string why;
};

struct ScalingAnalysis {
  std::vector<ScalingRow> rows;
  Recommendation fastest, balanced, most_efficient;
};

// The study's rule for a balanced configuration.
inline constexpr double kBalancedEfficiency = 0.6;
inline constexpr double kBalancedCpu = 0.7;

// REQUIRES: the first row is 1x1.
ScalingAnalysis Analyze(const ScalingResults& results);

// Fastest: the most env steps/s. Balanced: the fastest of those above kBalancedEfficiency and below kBalancedCpu,
// except a single environment. Most efficient: the highest efficiency, except a single environment.
void Recommend(ScalingAnalysis* analysis);

// {"machine", "config", "summary", "rows", "limits"}: results.json, and what --json writes.
nlohmann::ordered_json ToJson(const ScalingResults& results, const ScalingAnalysis& analysis);

}  // namespace skein
