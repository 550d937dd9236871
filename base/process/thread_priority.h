// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

namespace skein {

// Raises the niceness of the calling thread alone by 5: another thread on the same core then gets three quarters of its
// time. For threads that step environments. Where a learner shares a machine with its actors, all actors wait for its
// update, so the learner and the message threads have priority (docs/decisions/runners-give-way.md).
// Cannot fail: raising niceness is always allowed, and at its maximum nothing changes.
inline void LowerThreadPriority() {
  constexpr int kNicer = 5;
  // On Linux, niceness belongs to a thread.
  [[maybe_unused]] const int priority = nice(kNicer);
}

}  // namespace skein
