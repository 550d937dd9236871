// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/coordinator_state.h"
#include "coordinator/history.h"

namespace skein {

// A coordinator's History on the real clock, continued from what an earlier coordinator stored. Thread-safe.
class KeptHistory {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(10);  // What is lost with a coordinator that is killed.

  // Construct at the time that `now` below counts from.
  explicit KeptHistory(const CoordinatorState::Options& options);

  // Call once each History::kPeriod. Returns the changes to store: none before kPeriod is over.
  std::vector<StateChange> Add(const v1::StatusResponse& status, MonotonicTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // All changes since the last ones.
  std::vector<StateChange> TakeChanges() ABSL_LOCKS_EXCLUDED(mu_);
  // HistoryJson() of the last `count` points.
  std::string Json(size_t count) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const double start_unix_seconds_;
  mutable absl::Mutex mu_;
  History history_ ABSL_GUARDED_BY(mu_);
  MonotonicTime taken_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
