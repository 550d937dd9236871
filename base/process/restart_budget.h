// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "absl/time/time.h"

namespace skein {

// Allows `limit` restarts within any `window`. Times are MonotonicNow()'s. Not thread-safe.
class RestartBudget {
 public:
  RestartBudget(size_t limit, absl::Duration window) : limit_(limit), window_(window) {}

  // Takes one restart at `now` if there is one left. REQUIRES: `now` does not go back.
  bool Take(absl::Duration now) {
    while (!taken_.empty() && taken_.front() <= now - window_) taken_.pop_front();
    if (taken_.size() >= limit_) return false;
    taken_.push_back(now);
    return true;
  }

 private:
  size_t limit_;
  absl::Duration window_;
  std::deque<absl::Duration> taken_;
};

}  // namespace skein
