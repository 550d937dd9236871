// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// A log for events that unknown clients can repeat at will: one line at a time. Thread-safe.
class RareLog {
 public:
  explicit RareLog(absl::Duration period = absl::Seconds(10)) : period_(period) {}

  // `message` as it is to be logged at `now` (MonotonicNow()), control characters taken out and with the number of
  // those left out before it; nullopt: the last line is younger than the period.
  std::optional<std::string> Admit(const std::string& message, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);

  // Logs a warning if it is admitted now.
  void Warn(const std::string& message) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Duration period_;
  absl::Mutex mu_;
  absl::Duration last_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  uint64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace skein
