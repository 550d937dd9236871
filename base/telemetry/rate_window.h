// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace skein {

// Rate of a growing total over sliding windows. Pure; not thread-safe.
class RateWindow {
 public:
  // `total` at `now` (monotonic); totals never fall.
  void Add(absl::Duration now, uint64_t total);
  // Per second over the last `window`, or over what there is if that is shorter. 0 with less than two points.
  double Rate(absl::Duration now, absl::Duration window) const;

 private:
  std::deque<std::pair<absl::Duration, uint64_t>> points_;  // Of the last 300 s and one before.
};

}  // namespace skein
