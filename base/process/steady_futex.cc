// SPDX-License-Identifier: Apache-2.0
// Abseil's timed waits end at a time of day, and gRPC's timers (deadlines, keepalives, reconnections) wait that way:
// after the clock has been set back by an hour they would not run for an hour. Both are libraries that we take as they
// are, so the one system call that they wait with, which Abseil makes by this name, is replaced in every program of
// ours: waits for a time of day become waits for as long on the steady clock. All other calls pass through. Our own
// code waits with AwaitFor (base/process/steady_wait.h), which does not depend on this.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <ctime>

namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

int64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * kNanoseconds + now.tv_nsec;
}

// The moment of the steady clock that is as far away as `time_of_day`.
timespec Steady(const timespec& time_of_day) {
  int64_t left = kNanoseconds * 3600 * 24 * 365;  // And more cannot be counted.
  if (time_of_day.tv_sec < Now(CLOCK_REALTIME) / kNanoseconds + 3600 * 24 * 365) {
    left = time_of_day.tv_sec * kNanoseconds + time_of_day.tv_nsec - Now(CLOCK_REALTIME);
  }
  const int64_t at = std::max<int64_t>(Now(CLOCK_MONOTONIC) + left, 0);
  return {at / kNanoseconds, at % kNanoseconds};
}

using Syscall = long (*)(long, long, long, long, long, long, long);

// The C library's. Without a static that is initialised once: threads that meet there wait with this very call.
Syscall Next() {
  static std::atomic<Syscall> found{nullptr};
  Syscall next = found.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  next = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  found.store(next, std::memory_order_relaxed);
  return next;
}

}  // namespace

// Reads six arguments however many there are, as the C library's own does: the sixth may be something else on the
// caller's stack, which AddressSanitizer would mind.
extern "C" __attribute__((no_sanitize("address"))) long syscall(long number, ...) noexcept {
  const Syscall next = Next();
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
      a[3] != 0) {
    const timespec end = Steady(*reinterpret_cast<const timespec*>(a[3]));
    return next(number, a[0], a[1] & ~long{FUTEX_CLOCK_REALTIME}, a[2], reinterpret_cast<long>(&end), a[4], a[5]);
  }
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
