// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace skein {

// Waits until `condition()` holds, which is asked every `period`: true. After `limit` the running test has failed:
// false. For what other threads or processes do and give no other notice of.
template <typename Condition>
bool WaitUntil(Condition condition, absl::Duration limit = absl::Seconds(20),
               absl::Duration period = absl::Milliseconds(1)) {
  const absl::Time deadline = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > deadline) {
      ADD_FAILURE() << "waited " << limit << " in vain";
      return false;
    }
    absl::SleepFor(period);
  }
  return true;
}

}  // namespace skein
