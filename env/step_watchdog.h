// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "env/env_activity.h"

namespace skein {

// Detects environments that hang.   EnvActivity of each runner -> StepWatchdog -> on_hang
// One call into an environment may take `limit`; a longer one is detected up to an eighth of that later. Time is
// counted in the watchdog's own rounds, so that a process that was stopped as a whole and continues has not hung. Has a
// thread of its own.
class StepWatchdog {
 public:
  // Called on the watchdog's thread, once for each call that hangs.
  using OnHang = std::function<void(const EnvActivity::Place&)>;
  // All of `watched` must outlive this. `limit` 0: nothing is watched.
  StepWatchdog(std::vector<const EnvActivity*> watched, absl::Duration limit, OnHang on_hang);
  ~StepWatchdog();
  StepWatchdog(const StepWatchdog&) = delete;
  StepWatchdog& operator=(const StepWatchdog&) = delete;

 private:
  static constexpr int kRounds = 8;
  struct Watched {
    const EnvActivity* activity;
    uint64_t entries = 0;
    int rounds = 0;  // Rounds that it has been in the same call.
  };
  void Run(absl::Duration period);
  void Look();

  const OnHang on_hang_;
  std::vector<Watched> watched_;  // Used by the watchdog's thread.
  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace skein
