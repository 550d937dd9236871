// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/progress_line.h"
#include "bench/statistics.h"

// Measures a rate and its limit in turn, for several rounds.
namespace skein {

// A rate and its limit, measured in turn so that other load on the machine affects both.
struct Contest {
  std::string rate;                     // Key of the rate; the limit's key is "limit_" + rate.
  std::string ours_title, limit_title;  // For display.
  // Each measures for about the given time and returns its key and further values.
  std::function<absl::StatusOr<Json>(absl::Duration)> ours, limit;
  // Key of the ratio's denominator: "limit_" + rate if empty, else a key that `derive` adds.
  std::string reference;
  std::function<void(Json* row)> derive;  // Adds values computed from both; may be empty.

  std::string limit_rate() const { return "limit_" + rate; }
  std::string reference_rate() const { return reference.empty() ? limit_rate() : reference; }
};

// One row per round: "round", everything that both returned or `derive` added, and "ratio". The limit is measured first
// in the first round, last in the second, and so on, so that a drift favours neither. Cancelled: `stopped()` between
// two measurements. Errors as the measurements. Internal: a rate is not a positive number.
absl::StatusOr<std::vector<Json>> RunRounds(const Contest& contest, int rounds, absl::Duration seconds,
                                            const std::function<bool()>& stopped, ProgressLine* progress);

}  // namespace skein
