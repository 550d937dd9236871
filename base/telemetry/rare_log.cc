// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/rare_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/telemetry/printable.h"
#include "spdlog/spdlog.h"

namespace skein {

std::optional<std::string> RareLog::Admit(const std::string& message, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  if (now - last_ < period_) {
    ++left_out_;
    return std::nullopt;
  }
  last_ = now;
  const uint64_t left_out = std::exchange(left_out_, 0);
  return absl::StrCat(Printable(message), left_out == 0 ? "" : absl::StrCat(" (and ", left_out, " times before)"));
}

void RareLog::Warn(const std::string& message) {
  if (const auto line = Admit(message, MonotonicNow())) spdlog::warn("{}", *line);
}

}  // namespace skein
