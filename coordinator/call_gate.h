// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/net/call_quota.h"
#include "base/telemetry/rare_log.h"
#include "coordinator/message_bounds.h"
#include "coordinator/metrics.h"
#include "coordinator/monotonic_time.h"

namespace skein {

// Checks each call to the control plane against its client's quota and its size bounds. Counts and logs refused calls,
// including those that other code refuses later. Thread-safe.
//   call -> CallGate -> CoordinatorService
class CallGate {
 public:
  // `metrics` must outlive it. `arrivals`: the quota of barrier calls of one connection.
  CallGate(CoordinatorMetrics* metrics, const CallQuota::Options& arrivals) : metrics_(metrics), arrivals_(arrivals) {}

  // Counts a call against the quota of `peer`; barrier calls have a quota of their own. ResourceExhausted: `peer` calls
  // too often. InvalidArgument: as CheckBounds(request).
  template <typename Request>
  absl::Status Admit(const std::string& peer, const Request& request, const char* call, MonotonicTime now) {
    if (absl::Status s = TakeQuota(&quota_, peer, call, now); !s.ok()) return s;
    return Bounded(peer, call, CheckBounds(request));
  }
  absl::Status Admit(const std::string& peer, const v1::BarrierRequest& request, const char* call, MonotonicTime now) {
    if (absl::Status s = TakeQuota(&arrivals_, peer, call, now); !s.ok()) return s;
    return Bounded(peer, call, CheckBounds(request));
  }

  // REQUIRES: `status` is not ok.
  void Refused(const char* call, const absl::Status& status);
  void JoinRefused(const std::string& peer, const absl::Status& status);
  // Records the status with which a waiting barrier call ends.
  void ArrivalEnded(const absl::Status& status);

 private:
  absl::Status TakeQuota(CallQuota* quota, const std::string& peer, const char* call, MonotonicTime now);
  absl::Status Bounded(const std::string& peer, const char* call, const absl::Status& status);

  CoordinatorMetrics* const metrics_;
  CallQuota quota_;
  CallQuota arrivals_;  // Separate: too many barrier calls do not cost a member its lease.
  RareLog refusals_;
  RareLog refused_joins_;  // Separate: other refusals must not hide why a member cannot join.
  RareLog barrier_timeouts_;
};

}  // namespace skein
