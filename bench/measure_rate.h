// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace skein {

// Does a short piece of work and returns its number of units, > 0.
using Job = std::function<int64_t()>;

// Repeats each job for `duration` on a thread of its own, all concurrently. Returns units per second, summed over
// threads. The clock is read about twice a millisecond, however short a job is.
double MeasureRate(const std::vector<Job>& jobs, absl::Duration duration);

}  // namespace skein
