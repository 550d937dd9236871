// SPDX-License-Identifier: Apache-2.0
#include "coordinator/kept_history.h"

#include "absl/time/clock.h"

namespace skein {

KeptHistory::KeptHistory(const CoordinatorState::Options& options)
    : start_unix_seconds_(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch())) {
  if (options.saved) history_.Restore(options.saved->history, start_unix_seconds_, options.new_session);
}

std::vector<StateChange> KeptHistory::Add(const v1::StatusResponse& status, MonotonicTime now) {
  absl::MutexLock lock(&mu_);
  history_.Add(status, now);
  if (now - taken_ < kPeriod) return {};
  taken_ = now;
  return history_.TakeChanges(start_unix_seconds_);
}

std::vector<StateChange> KeptHistory::TakeChanges() {
  absl::MutexLock lock(&mu_);
  return history_.TakeChanges(start_unix_seconds_);
}

std::string KeptHistory::Json(size_t count) const {
  absl::MutexLock lock(&mu_);
  return HistoryJson(history_, count);
}

}  // namespace skein
