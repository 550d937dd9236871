// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// Hangs in a row of external environments' servers: those since any env group of this process last took a step. Hangs
// that overlap count once, as a machine that stands still makes all groups hang together. Times are MonotonicNow()'s.
// Thread-safe.
class ServerHangs {
 public:
  // Few, as each takes a timeout: so many, and the environments are given up.
  static constexpr int kMost = 3;

  // A server that was waited for since `begun` has not answered by `now`.
  void Count(absl::Duration begun, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (in_a_row_ > 0 && begun < last_) return;
    last_ = now;
    ++in_a_row_;
  }
  void CountStep() {
    if (!stepped_.load(std::memory_order_relaxed)) stepped_ = true;
    if (in_a_row_.load(std::memory_order_relaxed) != 0) in_a_row_ = 0;
  }

  int in_a_row() const { return in_a_row_; }
  bool stepped() const { return stepped_; }  // Some group has taken a step.

 private:
  absl::Mutex mu_;
  absl::Duration last_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> in_a_row_{0};
  std::atomic<bool> stepped_{false};
};

// Those of this process.
inline ServerHangs& HangsOfExternalEnvs() {
  static ServerHangs hangs;
  return hangs;
}

}  // namespace skein
