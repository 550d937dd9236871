// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer of the locks that it cannot see: Debian's Abseil is built without it, and so is gRPC, which
// uses Abseil's locks too. Linked into each test of the preset `tsan`, where these functions stand before those of
// libabsl_synchronization.so of the same names; each calls the one that it hides. With another Abseil they hide
// nothing.
#include <dlfcn.h>

#include <cstdint>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// As absl::Duration and absl::Time are passed.
struct Duration {
  int64_t seconds;
  uint32_t ticks;
};

template <typename Function>
Function* Hidden(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Within, the lock is given up and taken again, and conditions of this and of other threads are evaluated by the thread
// that holds it. These reads are ordered by what is inside Abseil.
class GivenUp {
 public:
  explicit GivenUp(void* mutex) : mutex_(mutex) {
    __tsan_release(mutex);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~GivenUp() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    __tsan_acquire(mutex_);
  }

 private:
  void* const mutex_;
};

}  // namespace

#define SKEIN_ABSL(member) "_ZN4absl7debian3" member
#define SKEIN_ABSL_CONST(member) "_ZNK4absl7debian3" member

// void F(mutex): takes the lock.
#define SKEIN_TAKES(function, symbol)                        \
  extern "C" void function(void* mutex) __asm__(symbol);     \
  extern "C" void function(void* mutex) {                    \
    static auto* const hidden = Hidden<void(void*)>(symbol); \
    hidden(mutex);                                           \
    __tsan_acquire(mutex);                                   \
  }
// bool F(mutex): takes it if nobody has it.
#define SKEIN_TRIES(function, symbol)                        \
  extern "C" bool function(void* mutex) __asm__(symbol);     \
  extern "C" bool function(void* mutex) {                    \
    static auto* const hidden = Hidden<bool(void*)>(symbol); \
    const bool taken = hidden(mutex);                        \
    if (taken) __tsan_acquire(mutex);                        \
    return taken;                                            \
  }
// void F(mutex): gives it back.
#define SKEIN_RELEASES(function, symbol)                     \
  extern "C" void function(void* mutex) __asm__(symbol);     \
  extern "C" void function(void* mutex) {                    \
    static auto* const hidden = Hidden<void(void*)>(symbol); \
    __tsan_release(mutex);                                   \
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);            \
    hidden(mutex);                                           \
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);              \
  }
// void F(mutex, condition): holds it when the condition does.
#define SKEIN_WAITS(function, symbol)                                           \
  extern "C" void function(void* mutex, const void* condition) __asm__(symbol); \
  extern "C" void function(void* mutex, const void* condition) {                \
    static auto* const hidden = Hidden<void(void*, const void*)>(symbol);       \
    const GivenUp given_up(mutex);                                              \
    hidden(mutex, condition);                                                   \
  }
// bool F(mutex, condition, time): the same, or when the time has come.
#define SKEIN_WAITS_UNTIL(function, symbol)                                                    \
  extern "C" bool function(void* mutex, const void* condition, Duration time) __asm__(symbol); \
  extern "C" bool function(void* mutex, const void* condition, Duration time) {                \
    static auto* const hidden = Hidden<bool(void*, const void*, Duration)>(symbol);            \
    const GivenUp given_up(mutex);                                                             \
    return hidden(mutex, condition, time);                                                     \
  }

SKEIN_TAKES(SkeinLock, SKEIN_ABSL("5Mutex4LockEv"))
SKEIN_TAKES(SkeinReaderLock, SKEIN_ABSL("5Mutex10ReaderLockEv"))
SKEIN_TRIES(SkeinTryLock, SKEIN_ABSL("5Mutex7TryLockEv"))
SKEIN_TRIES(SkeinReaderTryLock, SKEIN_ABSL("5Mutex13ReaderTryLockEv"))
SKEIN_RELEASES(SkeinUnlock, SKEIN_ABSL("5Mutex6UnlockEv"))
SKEIN_RELEASES(SkeinReaderUnlock, SKEIN_ABSL("5Mutex12ReaderUnlockEv"))
SKEIN_WAITS(SkeinAwait, SKEIN_ABSL("5Mutex5AwaitERKNS0_9ConditionE"))
SKEIN_WAITS(SkeinLockWhen, SKEIN_ABSL("5Mutex8LockWhenERKNS0_9ConditionE"))
SKEIN_WAITS(SkeinReaderLockWhen, SKEIN_ABSL("5Mutex14ReaderLockWhenERKNS0_9ConditionE"))
SKEIN_WAITS_UNTIL(SkeinAwaitFor, SKEIN_ABSL("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE"))
SKEIN_WAITS_UNTIL(SkeinAwaitUntil, SKEIN_ABSL("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE"))
SKEIN_WAITS_UNTIL(SkeinLockWhenFor, SKEIN_ABSL("5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE"))
SKEIN_WAITS_UNTIL(SkeinLockWhenUntil, SKEIN_ABSL("5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE"))

// absl::CondVar: the second argument is the mutex.
extern "C" void SkeinCondVarWait(void* variable, void* mutex) __asm__(SKEIN_ABSL("7CondVar4WaitEPNS0_5MutexE"));
extern "C" void SkeinCondVarWait(void* variable, void* mutex) {
  static auto* const hidden = Hidden<void(void*, void*)>(SKEIN_ABSL("7CondVar4WaitEPNS0_5MutexE"));
  const GivenUp given_up(mutex);
  hidden(variable, mutex);
}
#define SKEIN_CONDVAR_WAITS_UNTIL(function, symbol)                                     \
  extern "C" bool function(void* variable, void* mutex, Duration time) __asm__(symbol); \
  extern "C" bool function(void* variable, void* mutex, Duration time) {                \
    static auto* const hidden = Hidden<bool(void*, void*, Duration)>(symbol);           \
    const GivenUp given_up(mutex);                                                      \
    return hidden(variable, mutex, time);                                               \
  }
SKEIN_CONDVAR_WAITS_UNTIL(SkeinCondVarWaitFor, SKEIN_ABSL("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"))
SKEIN_CONDVAR_WAITS_UNTIL(SkeinCondVarWaitUntil, SKEIN_ABSL("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE"))

// absl::Notification: a thread that has waited knows what was before Notify().
SKEIN_RELEASES(SkeinNotify, SKEIN_ABSL("12Notification6NotifyEv"))
SKEIN_TAKES(SkeinWaitForNotification, SKEIN_ABSL_CONST("12Notification19WaitForNotificationEv"))
extern "C" bool SkeinWaitForNotificationFor(void* notification, Duration time) __asm__(
    SKEIN_ABSL_CONST("12Notification30WaitForNotificationWithTimeoutENS0_8DurationE"));
extern "C" bool SkeinWaitForNotificationFor(void* notification, Duration time) {
  static auto* const hidden =
      Hidden<bool(void*, Duration)>(SKEIN_ABSL_CONST("12Notification30WaitForNotificationWithTimeoutENS0_8DurationE"));
  const bool notified = hidden(notification, time);
  if (notified) __tsan_acquire(notification);
  return notified;
}
