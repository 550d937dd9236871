// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scaling_grid.h"
#include "bench/scaling_result.h"

// Finds the fastest configuration of a node with few measurements. Pure, except for the measuring function passed in.
namespace skein {

struct TuneTrial {
  ScalingPoint point;
  double env_steps_per_second = 0;
  double cpu = 0;  // Busy share of all cores, 0-1.
};

TuneTrial MakeTrial(const ScalingMeasurement& measured);

struct TuneSearch {
  std::vector<TuneTrial> trials;  // In the order in which they were measured.
  TuneTrial best;
};

using MeasureTrial = std::function<absl::StatusOr<TuneTrial>(const ScalingPoint& point)>;

// A configuration must be faster by this factor to be preferred to one with fewer environments or runners.
inline constexpr double kWorthIt = 1.03;

// Hill climbing from one runner per core with `envs_per_runner` environments: first with four times or a quarter of the
// environments, then with twice or half the runners, each as long as the gain is worth it. At equal speed fewer
// environments or runners are preferred. Tries only configurations whose environments divide steps_per_iteration.
// InvalidArgument: not even a single environment does (names what is needed). Others: errors of `measure`.
absl::StatusOr<TuneSearch> SearchFastest(uint32_t cores, uint32_t envs_per_runner, uint64_t steps_per_iteration,
                                         const MeasureTrial& measure);

std::string FormatTuneTable(const TuneSearch& search);

}  // namespace skein
