// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>

#include "absl/time/time.h"

namespace skein {

// Time since an arbitrary start, independent of the wall clock. Only differences are meaningful.
inline absl::Duration MonotonicNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Processor time of the calling thread.
inline absl::Duration ThreadCpuTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace skein
