// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace skein {

// Does a little work and returns how many units that was, > 0.
using Job = std::function<int64_t()>;

// Repeats each job for `duration` on a thread of its own, all at once; the sum over threads of units per second. The
// clock is read about twice a millisecond, however short a job is.
double MeasureRate(const std::vector<Job>& jobs, absl::Duration duration);

}  // namespace skein
