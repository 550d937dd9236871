// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/attempt.h"

#include <c10/util/Exception.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/fault_hook.h"
#include "base/process/steady_wait.h"

namespace skein {

std::string Reason(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) return torch_error->what_without_backtrace();
  return error.what();
}

Attempt::Attempt(std::string what, absl::Duration timeout, Watchdog* watchdog)
    : what_(std::move(what)), timeout_(timeout), deadline_(SteadyNow() + timeout), watchdog_(watchdog) {}

Watchdog::Watching Attempt::Watch() const {
  watchdog_->Begin(what_);
  const FaultKind fault = NextFault(FaultPoint::kCollective);
  if (fault != FaultKind::kNone) fault == FaultKind::kHang ? HangForever() : KillProcess();
  return Watchdog::Watching(watchdog_);
}

absl::Status Attempt::Classify(const std::exception& error) const {
  return SteadyNow() >= deadline_ ? absl::DeadlineExceededError(Reason(error)) : absl::UnavailableError(Reason(error));
}

absl::Status Attempt::Failed(const absl::Status& status) const {
  const char* const advice = absl::IsDeadlineExceeded(status)
                                 ? "another rank is late: look there; collective_timeout_seconds is how long ranks wait"
                                 : "another rank is gone: all ranks must meet again";
  return absl::Status(status.code(), absl::StrCat(what_, " failed within ", absl::FormatDuration(timeout_), ": ",
                                                  status.message(), "; ", advice));
}

}  // namespace skein
