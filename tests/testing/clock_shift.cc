// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that sets a process's clock: once the file that SKEIN_CLOCK_SHIFT names is there, the time
// of day is so many seconds later (or earlier) as it says. As with a clock that is really set, waits until a time of
// day that are under way end too early or too late; steady clocks know nothing of it.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLookAgain = kSecond / 200;  // How often the file is looked for,
constexpr int64_t kSlice = kSecond / 50;       // and a wait that is under way looks at the clock.

// The function that this library stands in for.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec Timespec(int64_t nanoseconds) {
  timespec time;
  time.tv_sec = nanoseconds / kSecond;
  time.tv_nsec = nanoseconds % kSecond;
  return time;
}

int RealClock(clockid_t clock, timespec* time) {
  static const auto next = Next<int (*)(clockid_t, timespec*)>("clock_gettime");
  return next(clock, time);
}

int64_t Now(clockid_t clock) {
  timespec time;
  RealClock(clock, &time);
  return Nanoseconds(time);
}

int64_t Shift() {
  static const char* const path = std::getenv("SKEIN_CLOCK_SHIFT");
  static std::atomic<int64_t> look_at{0}, shift{0};
  const int64_t now = Now(CLOCK_MONOTONIC);
  if (path == nullptr || now < look_at) return shift;
  look_at = now + kLookAgain;
  const int error = errno;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    char text[32] = {};
    if (read(file, text, sizeof(text) - 1) > 0) shift = std::atoll(text) * kSecond;
    close(file);
  }
  errno = error;
  return shift;
}

int64_t TimeOfDay() { return Now(CLOCK_REALTIME) + Shift(); }

// Calls `wait` with steady deadlines until it does not end with "timed out", or the time of day is `until`.
template <typename Wait>
bool TimedOut(int64_t until, Wait wait) {
  while (true) {
    const int64_t left = until - TimeOfDay();
    if (left <= 0) return true;
    const timespec end = Timespec(Now(CLOCK_MONOTONIC) + std::min(left, kSlice));
    if (!wait(end)) return false;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = RealClock(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *time = Timespec(Nanoseconds(*time) + Shift());
  }
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  const timespec now = Timespec(TimeOfDay());
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) noexcept {
  const time_t now = TimeOfDay() / kSecond;
  if (to != nullptr) *to = now;
  return now;
}

// Abseil waits with it.
long syscall(long number, ...) noexcept {
  using Syscall = long (*)(long, long, long, long, long, long, long);
  // Not initialised once: threads that meet there wait with this very call.
  static std::atomic<Syscall> found{nullptr};
  Syscall next = found;
  if (next == nullptr) found = next = Next<Syscall>("syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  const bool until_time_of_day = number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
                                 (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] != 0;
  if (!until_time_of_day) return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  long result = 0;
  const int64_t until = Nanoseconds(*reinterpret_cast<const timespec*>(a[3]));
  const bool over = TimedOut(until, [&](const timespec& end) {
    result = next(number, a[0], a[1] & ~static_cast<long>(FUTEX_CLOCK_REALTIME), a[2], reinterpret_cast<long>(&end),
                  a[4], a[5]);
    return result != 0 && errno == ETIMEDOUT;
  });
  if (!over) return result;
  errno = ETIMEDOUT;
  return -1;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static const auto clock_wait =
      Next<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  constexpr int64_t kYear = 365 * 24 * 3600 * kSecond;
  // A condition may have been told to count on the steady clock, which began not long ago.
  if (Nanoseconds(*until) < TimeOfDay() - kYear) return clock_wait(condition, mutex, CLOCK_MONOTONIC, until);
  int result = 0;
  const bool over = TimedOut(Nanoseconds(*until), [&](const timespec& end) {
    result = clock_wait(condition, mutex, CLOCK_MONOTONIC, &end);
    return result == ETIMEDOUT;
  });
  return over ? ETIMEDOUT : result;
}

}  // extern "C"
