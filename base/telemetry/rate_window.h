// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace skein {

// Computes the rate of a growing total over sliding windows. Pure; not thread-safe.
class RateWindow {
 public:
  // Adds the value `total` at `now` (monotonic). REQUIRES: totals never decrease.
  void Add(absl::Duration now, uint64_t total);
  // Rate per second over the last `window`, or over all points if they span less. 0 with less than two points.
  double Rate(absl::Duration now, absl::Duration window) const;

 private:
  std::deque<std::pair<absl::Duration, uint64_t>> points_;  // Points of the last 300 s, and the one before.
};

}  // namespace skein
