// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scaling_grid.h"
#include "bench/scaling_result.h"

// Finds the fastest configuration of a node with few measurements. Pure but for the measuring, which is passed in.
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

// A configuration must be this much faster to be taken instead of one with fewer environments or runners.
inline constexpr double kWorthIt = 1.03;

// Climbs from one runner a core with `envs_per_runner` environments: first with four times or a quarter of the
// environments, then with twice or half the runners, each as long as it is worth it. Of two that are as fast, fewer
// environments or runners win. Tries only what divides
// steps_per_iteration. InvalidArgument: not even a single environment does (names what is needed). Otherwise errors of
// `measure`.
absl::StatusOr<TuneSearch> SearchFastest(uint32_t cores, uint32_t envs_per_runner, uint64_t steps_per_iteration,
                                         const MeasureTrial& measure);

std::string FormatTuneTable(const TuneSearch& search);

}  // namespace skein
