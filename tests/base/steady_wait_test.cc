// SPDX-License-Identifier: Apache-2.0
#include "base/process/steady_wait.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(SteadyWait, AConditionThatHoldsNeedsNoWait) {
  absl::Mutex mu;
  bool ready = true;
  absl::MutexLock lock(&mu);
  EXPECT_TRUE(AwaitFor(&mu, absl::Condition(&ready), absl::ZeroDuration()));
}

TEST(SteadyWait, EndsWithFalseWhenItsTimeIsOverAndNotBefore) {
  absl::Mutex mu;
  bool ready = false;
  absl::MutexLock lock(&mu);
  EXPECT_FALSE(AwaitFor(&mu, absl::Condition(&ready), -absl::Seconds(1)));
  const absl::Duration begin = MonotonicNow();
  EXPECT_FALSE(AwaitFor(&mu, absl::Condition(&ready), absl::Milliseconds(20)));
  EXPECT_GE(MonotonicNow() - begin, absl::Milliseconds(20));
}

TEST(SteadyWait, EndsWhenAnotherThreadMakesTheConditionTrue) {
  absl::Mutex mu;
  bool ready = false;
  std::thread other([&] {
    absl::MutexLock lock(&mu);
    ready = true;
  });
  {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(AwaitFor(&mu, absl::Condition(&ready), absl::InfiniteDuration()));
  }
  other.join();
}

// The mutex is held by another when the time is over: the wait ends once it is free, with what is true then.
TEST(SteadyWait, AMutexThatIsHeldDelaysTheEndOnly) {
  absl::Mutex mu;
  bool waiting = false, ready = false;
  bool result = true;
  std::thread waiter([&] {
    absl::MutexLock lock(&mu);
    waiting = true;
    result = AwaitFor(&mu, absl::Condition(&ready), absl::Milliseconds(5));
  });
  {
    absl::MutexLock lock(&mu);
    mu.Await(absl::Condition(&waiting));
    absl::Mutex other;
    bool never = false;
    absl::MutexLock other_lock(&other);
    EXPECT_FALSE(AwaitFor(&other, absl::Condition(&never), absl::Milliseconds(20)));
  }
  waiter.join();
  EXPECT_FALSE(result);
}

// Each wait's mutex is gone right after it: nothing may touch it then.
TEST(SteadyWait, ManyShortWaitsOnMutexesThatDoNotLast) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 50; ++k) {
        auto mu = std::make_unique<absl::Mutex>();
        bool ready = false;
        absl::MutexLock lock(mu.get());
        EXPECT_FALSE(AwaitFor(mu.get(), absl::Condition(&ready), absl::Microseconds(20 * i + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace skein
