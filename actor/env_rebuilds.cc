// SPDX-License-Identifier: Apache-2.0
#include "actor/env_rebuilds.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/log.h"

namespace skein {

absl::StatusOr<std::unique_ptr<VectorEnv>> EnvRebuilds::Rebuild(absl::Status failure, uint32_t in_a_row,
                                                                absl::Duration pause, uint32_t phase) {
  const bool hopeless = !absl::IsInternal(failure);
  while (true) {
    metrics_->CountEnvFailure();
    if (hopeless) return failure;
    {
      absl::MutexLock lock(&mu_);
      if (!budget_.Take(MonotonicNow())) {
        return absl::InternalError(
            absl::StrCat("environments failed more than ", most_, " times within ", absl::FormatDuration(kWindow),
                         " (rollout.env_rebuilds), the last time: ", std::string(failure.message())));
      }
      if (in_a_row > most_) {  // Each may take longer than the window allows for.
        return absl::InternalError(
            absl::StrCat("environments failed ", in_a_row, " times in a row in one fragment, ", "want at most ", most_,
                         " (rollout.env_rebuilds), the last time: ", std::string(failure.message())));
      }
      spdlog::warn("{}; it is built anew in {}", std::string(failure.message()),
                   absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1))));
      AwaitFor(&mu_, absl::Condition(&cancelled_), pause);
      if (cancelled_) return absl::CancelledError("stopped on request");
    }
    auto made = make_(phase);
    if (made.ok()) return made;
    failure = made.status();
    pause *= 2;
    ++in_a_row;
  }
}

void EnvRebuilds::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
}

}  // namespace skein
