// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace skein {

// A moment on a steady clock, counted from the coordinator's start; always passed in, never read by pure code.
// absl::InfiniteDuration() is "never".
using MonotonicTime = absl::Duration;

}  // namespace skein
