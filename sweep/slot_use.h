// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace skein {

// The share of time in which the slots of a sweep were busy: the time of trainings over the time of slots. Time is
// passed in. Not thread-safe.
class SlotUse {
 public:
  // From `now` until the next call `busy` of `slots` slots are busy. Slots that are gone count while a training is in
  // them.
  void Observe(absl::Duration now, uint32_t busy, uint32_t slots);
  // Between 0 and 1. nullopt: there was no slot, or no time.
  std::optional<double> share() const;

 private:
  std::optional<absl::Duration> since_;
  uint32_t busy_ = 0, slots_ = 0;               // Since then.
  double busy_seconds_ = 0, slot_seconds_ = 0;  // Until then.
};

}  // namespace skein
