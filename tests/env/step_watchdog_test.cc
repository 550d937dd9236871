// SPDX-License-Identifier: Apache-2.0
#include "env/step_watchdog.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr absl::Duration kLimit = absl::Milliseconds(16);

TEST(StepWatchdog, SaysWhereACallHangsOnce) {
  EnvActivity good, hangs;
  std::atomic<int> hung{0};
  EnvActivity::Place where;
  good.Enter(1, 2, 3);
  good.Leave();
  hangs.Enter(7, 8, 9);
  absl::Notification seen;
  {
    const StepWatchdog watchdog({&good, &hangs}, kLimit, [&](const EnvActivity::Place& place) {
      where = place;
      if (++hung == 1) seen.Notify();
    });
    seen.WaitForNotification();
    EXPECT_EQ(where.env_index, 7u);
    EXPECT_EQ(where.episode, 8u);
    EXPECT_EQ(where.step, 9u);
    // Another one that hangs is another matter.
    hangs.Leave();
    hangs.Enter(7, 8, 10);
    WaitUntil([&] { return hung.load() == 2; });
  }
  EXPECT_EQ(hung, 2);
}

TEST(StepWatchdog, CallsThatComeBackAreNoHang) {
  EnvActivity busy;
  std::atomic<int> hung{0};
  const StepWatchdog watchdog({&busy}, absl::Seconds(5), [&](const EnvActivity::Place&) { ++hung; });
  for (uint32_t step = 1; step < 1000; ++step) {
    busy.Enter(0, 0, step);
    busy.Leave();
  }
  EXPECT_EQ(hung, 0);
}

TEST(StepWatchdog, WithoutALimitNothingIsWatched) {
  EnvActivity hangs;
  hangs.Enter(0, 0, 0);
  const StepWatchdog watchdog({&hangs}, absl::ZeroDuration(), [](const EnvActivity::Place&) { FAIL(); });
}

}  // namespace
}  // namespace skein
