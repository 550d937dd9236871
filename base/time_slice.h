// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// For how long at a time a thread is let run where others want its core too. A thread that wakes up with a short one,
// of 0.1 ms, interrupts one that runs with the usual one, provided that it has not had more than its share of the core.
// Shares of the core stay the same, whatever the slice.
enum class TimeSlice {
  kUsual,  // As this process had it when it first asked for any; some milliseconds.
  kShort,  // For threads that mostly wait: for messages, for work.
};

// Of the calling thread, and of threads that it starts from then on. Linux 6.12 and later; has no effect elsewhere, nor
// on threads with a scheduling policy that an administrator chose. Thread-safe, but for the first call.
void UseTimeSlice(TimeSlice slice);

}  // namespace skein
