// SPDX-License-Identifier: Apache-2.0
#include "env/step_watchdog.h"

#include <utility>

#include "base/process/steady_wait.h"

namespace skein {

StepWatchdog::StepWatchdog(std::vector<const EnvActivity*> watched, absl::Duration limit, OnHang on_hang)
    : on_hang_(std::move(on_hang)) {
  for (const EnvActivity* activity : watched) watched_.push_back({activity});
  if (limit > absl::ZeroDuration()) thread_ = std::thread([this, limit] { Run(limit / kRounds); });
}

StepWatchdog::~StepWatchdog() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void StepWatchdog::Run(absl::Duration period) {
  absl::MutexLock lock(&mu_);
  while (!AwaitFor(&mu_, absl::Condition(&stop_), period)) Look();
}

void StepWatchdog::Look() {
  for (Watched& one : watched_) {
    const EnvActivity::Place place = one.activity->Read();
    if (!place.inside || place.entries != one.entries) {
      one.entries = place.entries;
      one.rounds = 0;
    } else if (++one.rounds == kRounds) {  // Seen for the first time, and after each of kRounds periods again.
      on_hang_(place);
    }
  }
}

}  // namespace skein
