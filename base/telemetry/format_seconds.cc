// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/format_seconds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace skein {

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const uint64_t total = std::llround(std::min(seconds, 1e12));
  if (total < 60) return absl::StrCat(total, "s");
  if (total < 3600) return absl::StrFormat("%dm%02ds", total / 60, total % 60);
  return absl::StrFormat("%dh%02dm", total / 3600, total % 3600 / 60);
}

}  // namespace skein
