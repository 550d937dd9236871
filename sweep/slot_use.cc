// SPDX-License-Identifier: Apache-2.0
#include "sweep/slot_use.h"

#include <algorithm>

namespace skein {

void SlotUse::Observe(absl::Duration now, uint32_t busy, uint32_t slots) {
  if (since_) {
    const double seconds = absl::ToDoubleSeconds(now - *since_);
    busy_seconds_ += busy_ * seconds;
    slot_seconds_ += slots_ * seconds;
  }
  since_ = now;
  busy_ = busy;
  slots_ = std::max(busy, slots);
}

std::optional<double> SlotUse::share() const {
  if (slot_seconds_ <= 0) return std::nullopt;
  return busy_seconds_ / slot_seconds_;
}

}  // namespace skein
