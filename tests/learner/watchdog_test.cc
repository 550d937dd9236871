// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/watchdog.h"

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(Watchdog, NamesTheOperationThatDoesNotEnd) {
  absl::Notification barked;
  std::string stuck;
  Watchdog watchdog(absl::Milliseconds(10), [&](const std::string& what) {
    stuck = what;
    barked.Notify();
  });
  watchdog.Begin("gather on rank 1 of 2");
  const Watchdog::Watching watching(&watchdog);
  EXPECT_TRUE(barked.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(stuck, "gather on rank 1 of 2");
}

TEST(Watchdog, IsSilentAboutThoseThatEnd) {
  Watchdog watchdog(absl::Hours(1), [](const std::string& what) { ADD_FAILURE() << what; });
  for (int i = 0; i < 100; ++i) {
    watchdog.Begin("gather");
    const Watchdog::Watching watching(&watchdog);
  }
}

TEST(WatchdogDeathTest, EndsTheProcessWithCode75IfNothingElseIsSaid) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Watchdog watchdog(absl::Milliseconds(10), nullptr);
        watchdog.Begin("all-reduce on rank 0 of 2");
        absl::SleepFor(absl::Minutes(1));
      },
      testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace skein
