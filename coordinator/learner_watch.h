// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "coordinator/monotonic_time.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Tells whether the learner that leads hangs: its heartbeats arrive, since a thread of their own sends them, and its
// training thread does nothing. A training thread that works, or waits for data, finishes a stage of its work again and
// again (RunProgress.stage_seconds).   Begin -> Observe (each report) -> Hangs
// Pure: no clock, no I/O. Not thread-safe.
class LearnerWatch {
 public:
  // `patience`: how long nothing may change; three times the longest such time of this learner, if that is longer,
  // since an update or a checkpoint may take long.
  explicit LearnerWatch(absl::Duration patience) : patience_(patience) {}

  // Another learner leads, or none does.
  void Begin(MonotonicTime now);
  // `progress`: as the learner reported it.
  void Observe(const v1::RunProgress& progress, MonotonicTime now);
  // For how long nothing has changed, if that is too long; else zero. REQUIRES: a learner leads.
  absl::Duration Hangs(MonotonicTime now) const;

 private:
  const absl::Duration patience_;
  v1::RunProgress seen_;      // Only what shows work.
  MonotonicTime changed_;     // When it last did, or the learner began.
  absl::Duration longest_;    // Between two changes.
  bool has_changed_ = false;  // It has finished a stage; loading is no measure of how long one takes.
};

}  // namespace skein
