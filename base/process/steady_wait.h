// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/process/clock.h"

// Waits and deadlines that do not change when the system's clock is set. Abseil's own timed waits
// (AwaitWithTimeout, WaitForNotificationWithTimeout, ...) end at a time of day: an hour late, or at once, where the
// clock is set meanwhile.
namespace skein {

// Releases `mu` until `condition` holds or `timeout` is over: whether it holds. Like Mutex::AwaitWithTimeout, the
// condition is looked at when `mu` is released. Costs one entry with a process-wide thread, which is started by
// the first call that has to wait and never ends. Thread-safe.
bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition, absl::Duration timeout)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

// A moment of the steady clock, for deadlines that are compared with nothing else. Not a time of day.
inline absl::Time SteadyNow() { return absl::UnixEpoch() + MonotonicNow(); }

}  // namespace skein
