// SPDX-License-Identifier: Apache-2.0
#include "coordinator/call_gate.h"

#include "absl/strings/str_cat.h"

namespace skein {

absl::Status CallGate::TakeQuota(CallQuota* quota, const std::string& peer, const char* call, MonotonicTime now) {
  const absl::Status status = quota->Take(peer, now);
  if (!status.ok()) metrics_->CallRefused(call, status.code());
  return status;
}

absl::Status CallGate::Bounded(const std::string& peer, const char* call, const absl::Status& status) {
  if (status.ok()) return status;
  metrics_->CallRefused(call, status.code());
  refusals_.Warn(absl::StrCat("refused ", call, " from ", peer, ": ", status.message()));
  return status;
}

void CallGate::Refused(const char* call, const absl::Status& status) {
  metrics_->CallRefused(call, status.code());
  if (absl::IsPermissionDenied(status)) refusals_.Warn(absl::StrCat("refused ", call, ": ", status.message()));
}

void CallGate::JoinRefused(const std::string& peer, const absl::Status& status) {
  metrics_->CallRefused("Join", status.code());
  refused_joins_.Warn(absl::StrCat("refused a join from ", peer, ": ", status.message()));
}

void CallGate::ArrivalEnded(const absl::Status& status) {
  metrics_->CallRefused("ArriveAtBarrier", status.code());
  if (absl::IsDeadlineExceeded(status)) {
    barrier_timeouts_.Warn(std::string(status.message()));
  } else {
    refusals_.Warn(std::string(status.message()));
  }
}

}  // namespace skein
