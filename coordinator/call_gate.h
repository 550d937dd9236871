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

// Admits calls to the control plane by their client's quota and by their bounds; counts and logs those that are
// refused, here or later. Thread-safe.
//   call -> CallGate -> CoordinatorService
class CallGate {
 public:
  // `metrics` must outlive it. `arrivals`: how many from a connection at barriers.
  CallGate(CoordinatorMetrics* metrics, const CallQuota::Options& arrivals) : metrics_(metrics), arrivals_(arrivals) {}

  // Counts a call to the quota of `peer`, barriers apart. ResourceExhausted: it calls too often. InvalidArgument:
  // CheckBounds(request).
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
  // A call that has waited at a barrier ends with it.
  void ArrivalEnded(const absl::Status& status);

 private:
  absl::Status TakeQuota(CallQuota* quota, const std::string& peer, const char* call, MonotonicTime now);
  absl::Status Bounded(const std::string& peer, const char* call, const absl::Status& status);

  CoordinatorMetrics* const metrics_;
  CallQuota quota_;
  CallQuota arrivals_;  // Apart: a member that arrives too often keeps its lease all the same.
  RareLog refusals_;
  RareLog refused_joins_;  // Apart: other refusals are not to hide why a member does not come in.
  RareLog barrier_timeouts_;
};

}  // namespace skein
