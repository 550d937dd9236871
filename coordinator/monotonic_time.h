// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace skein {

// A time on a steady clock, counted from the coordinator's start. Pure code takes it as an argument and never reads a
// clock. absl::InfiniteDuration() means "never".
using MonotonicTime = absl::Duration;

}  // namespace skein
