// SPDX-License-Identifier: Apache-2.0
#include "env/shared_steps.h"

#include "base/process/clock.h"

namespace skein {
namespace {

// For so long a value is looked at before the thread sleeps: about what waking one up takes. It does not yield: another
// thread that computes would keep the core for milliseconds.
constexpr absl::Duration kSpin = absl::Microseconds(20);

// Returns once `done` holds of `value`. The thread that makes it hold must notify.
template <typename Done>
void Await(const std::atomic<uint32_t>& value, Done done) {
  const absl::Duration until = MonotonicNow() + kSpin;
  do {
    if (done(value.load(std::memory_order_acquire))) return;
  } while (MonotonicNow() < until);
  for (uint32_t now = value.load(std::memory_order_acquire); !done(now); now = value.load(std::memory_order_acquire)) {
    value.wait(now, std::memory_order_acquire);
  }
}

}  // namespace

void SharedSteps::StepAll(StepOne step, absl::FunctionRef<void()> pause) {
  if (helpers_.load(std::memory_order_relaxed) == 0) {
    for (uint32_t e = 0; e < count_; ++e) step(e);
    pause();
    return;
  }
  stepped_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_release);
  Wake();
  StepSome(step, [] { return false; });
  pause();
  Await(stepped_, [this](uint32_t stepped) { return stepped == count_; });
}

// Returns how many.
uint32_t SharedSteps::StepSome(StepOne step, absl::FunctionRef<bool()> leave) {
  uint32_t mine = 0;
  while (next_.load(std::memory_order_relaxed) < count_ && !leave()) {
    // A number below count_ belongs to a StepAll that cannot end before `stepped_` says so.
    const uint32_t e = next_.fetch_add(1, std::memory_order_acq_rel);
    if (e >= count_) break;
    step(e);
    ++mine;
    if (stepped_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) stepped_.notify_all();
  }
  return mine;
}

absl::Duration SharedSteps::Help(StepOne step, absl::FunctionRef<bool()> leave, absl::FunctionRef<void()> pause) {
  absl::Duration stepped;
  helpers_.fetch_add(1, std::memory_order_relaxed);
  while (true) {
    // Before `leave` is asked: what makes it true counts this up.
    const uint32_t seen = calls_.load(std::memory_order_acquire);
    if (leave()) break;
    const absl::Duration begin = MonotonicNow();
    const uint32_t mine = StepSome(step, leave);
    pause();
    if (mine > 0) {
      stepped += MonotonicNow() - begin;
    } else {
      Await(calls_, [seen](uint32_t calls) { return calls != seen; });
    }
  }
  helped_ += absl::ToInt64Nanoseconds(stepped);
  helpers_.fetch_sub(1, std::memory_order_relaxed);
  return stepped;
}

void SharedSteps::Wake() {
  calls_.fetch_add(1, std::memory_order_acq_rel);
  calls_.notify_all();
}

}  // namespace skein
