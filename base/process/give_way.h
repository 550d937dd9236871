// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

namespace skein {

// Makes the calling thread, and no other, nicer by 5: another that wants the same core gets three quarters of it. For
// those that step environments. Where a learner computes beside its actors, all of them wait for its update in the end,
// so it goes first, and what moves messages does too (docs/decisions/runners-give-way.md). Cannot fail: more niceness
// is always allowed, and beyond the most there is nothing changes.
inline void GiveWay() {
  constexpr int kNicer = 5;
  // On Linux, niceness is of a thread.
  static_cast<void>(nice(kNicer));
}

}  // namespace skein
