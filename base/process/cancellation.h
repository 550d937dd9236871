// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace skein {

// A request, with a reason, to stop an operation. It can be made once, from any thread, and ends a blocking call.
// Thread-safe.
class Cancellation {
 public:
  // REQUIRES: !why.ok(). Later calls do not change the reason.
  void Cancel(absl::Status why = absl::CancelledError("stopped on request")) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (!status_.ok()) return;
    status_ = std::move(why);
    if (on_cancel_) on_cancel_();
  }

  // OK until Cancel(), then its reason.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return status_;
  }

  // Sets the callback, which runs once: in Cancel(), or in this call after Cancel(). Replaces an earlier one; an empty
  // function removes it. No callback runs when this returns. The callback must not call this object.
  void OnCancel(std::function<void()> on_cancel) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    on_cancel_ = std::move(on_cancel);
    if (!status_.ok() && on_cancel_) on_cancel_();
  }

 private:
  mutable absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
