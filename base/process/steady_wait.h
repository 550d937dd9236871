// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/process/clock.h"

// Waits and deadlines that do not change when the system's clock is set. Abseil's own timed waits
// (AwaitWithTimeout, WaitForNotificationWithTimeout, ...) end at a time of day: if the clock is set during the wait,
// too late or at once.
namespace skein {

// Releases `mu` until `condition` holds or `timeout` is over; returns whether it holds. As in Mutex::AwaitWithTimeout,
// the condition is evaluated when `mu` is released. A wait registers with one process-wide thread, which the first
// waiting call starts and which never ends. Thread-safe.
bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition, absl::Duration timeout)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

// The steady clock's time as absl::Time; compare it only with other values of SteadyNow(). Not a time of day.
inline absl::Time SteadyNow() { return absl::UnixEpoch() + MonotonicNow(); }

}  // namespace skein
