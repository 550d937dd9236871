// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

namespace skein {

// Raises the niceness of the calling thread, and no other, by 5: another thread that wants the same core gets three
// quarters of it. For threads that step environments. Where a learner computes beside its actors, all of them wait for
// its update in the end, so it goes first, and what moves messages does too (docs/decisions/runners-give-way.md).
// Cannot fail: more niceness is always allowed, and beyond the most there is nothing changes.
inline void LowerThreadPriority() {
  constexpr int kNicer = 5;
  // On Linux, niceness is of a thread.
  static_cast<void>(nice(kNicer));
}

}  // namespace skein
