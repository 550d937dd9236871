// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/work_progress.h"

#include "absl/strings/str_format.h"
#include "base/telemetry/format_seconds.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(5);

}  // namespace

void WorkProgress::Set(const std::string& what, double share, absl::Duration now) {
  const absl::MutexLock lock(&mu_);
  if (what != what_) {
    what_ = what;
    began_ = now;
  }
  if (now - said_ < kBetweenLines) return;
  said_ = now;
  const double left = share > 0 ? absl::ToDoubleSeconds(now - began_) * (1 - share) / share : -1;
  say_(absl::StrFormat("%s: %.0f%%, ETA %s", what, 100 * share, FormatSeconds(left)));
}

}  // namespace skein
