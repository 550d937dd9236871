// SPDX-License-Identifier: Apache-2.0
#include "base/net/backoff.h"

#include <algorithm>

namespace skein {

absl::Duration Backoff::Next() {
  absl::Duration high = base_;
  for (int i = 0; i < attempt_ && high < cap_; ++i) high *= 2;
  high = std::min(high, cap_);
  if (high < cap_) ++attempt_;
  const absl::Duration low = std::min(base_ / 2, high);
  return low + (high - low) * absl::Uniform(bits_, 0.0, 1.0);
}

}  // namespace skein
