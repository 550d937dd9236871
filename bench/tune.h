// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Finds the fastest settings of a node with few measurements. Pure, except for the measuring function passed in.
//   TuneSpace -> SearchFastest -> TuneSearch
namespace skein {

// A value for each knob of a TuneSpace.
using TunePoint = std::vector<uint64_t>;
// "runners" or the name of a setting, and its value.
using TuneSettings = std::vector<std::pair<std::string, uint64_t>>;

// A number that is varied by multiplication and division.
struct TuneKnob {
  uint64_t start = 1, factor = 2;
  uint64_t least = 1, most = 1;
};

// What is varied, in this order, and what it means.
struct TuneSpace {
  std::vector<TuneKnob> knobs;
  std::function<bool(const TunePoint& point)> fits;  // Whether a run with it can be; within least and most.
  std::function<TuneSettings(const TunePoint& point)> settings;
  std::vector<std::string> learned;  // Those of the settings that also change what is learned.
};

struct TuneTrial {
  TunePoint point;
  TuneSettings settings;
  double env_steps_per_second = 0;  // 0: it failed.
  double seconds = 0;               // That were measured.
  double cpu = 0;                   // Busy share of all cores, 0-1.
  std::optional<double> gpu;        // Of the GPUs, likewise.
  std::string failure;              // Why it failed.
};

struct TuneSearch {
  std::vector<TuneTrial> trials;  // In the order in which they were measured.
  TuneTrial best;
};

// A trial without point and settings. Errors end the search if they are Cancelled or come of the first point; else the
// point counts as failed.
using MeasureTrial = std::function<absl::StatusOr<TuneTrial>(const TuneSettings& settings)>;

// Settings must be faster by this factor to be preferred to smaller ones.
inline constexpr double kWorthIt = 1.03;

// Hill climbing from the starting point, knob by knob: first upwards, and if that was not worth it, downwards, each as
// long as it is. At equal speed the smaller value is preferred. Only points that fit are tried.
// InvalidArgument: the starting point does not fit. Others: errors of `measure`.
absl::StatusOr<TuneSearch> SearchFastest(const TuneSpace& space, const MeasureTrial& measure);

// A line for each trial; titles are the settings' last keys.
std::string FormatTuneTable(const TuneSearch& search);

}  // namespace skein
