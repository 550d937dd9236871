// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// A rate-limited log for events that unknown clients can cause: at most one line per period. Thread-safe.
class RareLog {
 public:
  explicit RareLog(absl::Duration period = absl::Seconds(10)) : period_(period) {}

  // The log line for `message` at `now` (MonotonicNow()): without control characters, with the number of messages
  // suppressed since the last line. Nullopt: the last line is younger than the period.
  std::optional<std::string> Admit(const std::string& message, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);

  // Logs `message` as a warning if Admit() allows it now.
  void Warn(const std::string& message) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Duration period_;
  absl::Mutex mu_;
  absl::Duration last_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  uint64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace skein
