// SPDX-License-Identifier: Apache-2.0
#include "base/process/shutdown.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

class ShutdownTest : public testing::Test {
 protected:
  // The statements of death tests run in a process of their own, started afresh.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ShutdownTest, CallsBackOnAnOrdinaryThread) {
  ShutdownSignal shutdown;
  EXPECT_FALSE(shutdown.signalled());
  absl::Notification called;
  shutdown.OnSignal([&] { called.Notify(); });
  kill(getpid(), SIGTERM);
  ASSERT_TRUE(called.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(shutdown.signalled());
  shutdown.OnSignal(nullptr);
}

TEST_F(ShutdownTest, CallbackSetAfterTheSignalIsCalledAtOnce) {
  ShutdownSignal shutdown;
  absl::Notification first;
  shutdown.OnSignal([&] { first.Notify(); });
  kill(getpid(), SIGINT);
  ASSERT_TRUE(first.WaitForNotificationWithTimeout(kPatience));
  absl::Notification second;
  shutdown.OnSignal([&] { second.Notify(); });
  EXPECT_TRUE(second.WaitForNotificationWithTimeout(kPatience));
  shutdown.OnSignal(nullptr);
}

TEST_F(ShutdownTest, ReplacedAndRemovedCallbacksAreNotCalled) {
  ShutdownSignal shutdown;
  shutdown.OnSignal([] { ADD_FAILURE() << "replaced"; });
  absl::Notification called;
  shutdown.OnSignal([&] {
    called.Notify();
    shutdown.OnSignal(nullptr);  // Allowed from the callback itself.
  });
  kill(getpid(), SIGTERM);
  ASSERT_TRUE(called.WaitForNotificationWithTimeout(kPatience));
}

TEST_F(ShutdownTest, AThreadThatWasThereBeforeDoesNotEndTheProcess) {
  absl::Notification done;
  std::thread before([&] { done.WaitForNotification(); });  // Blocks no signal.
  absl::Notification called;
  {
    ShutdownSignal shutdown;
    shutdown.OnSignal([&] { called.Notify(); });
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(called.WaitForNotificationWithTimeout(kPatience));
    shutdown.OnSignal(nullptr);
  }
  done.Notify();
  before.join();
}

TEST_F(ShutdownTest, RestoresTheSignalMask) {
  sigset_t mask;
  {
    const ShutdownSignal shutdown;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_TRUE(sigismember(&mask, SIGTERM));
    EXPECT_TRUE(sigismember(&mask, SIGINT));
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGTERM));
}

TEST_F(ShutdownTest, BrokenPipesAreErrorsAndNotTheEnd) {
  const ShutdownSignal shutdown;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
}

TEST_F(ShutdownTest, SecondSignalEndsTheProcessEvenIfTheCallbackHangs) {
  EXPECT_EXIT(
      {
        ShutdownSignal shutdown(absl::ZeroDuration());
        absl::Notification called;
        shutdown.OnSignal([&] {
          called.Notify();
          pause();
        });
        kill(getpid(), SIGTERM);
        called.WaitForNotification();
        kill(getpid(), SIGINT);
        pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST_F(ShutdownTest, TheSameWishToldTwiceCountsOnce) {
  EXPECT_EXIT(
      {
        ShutdownSignal shutdown(absl::Hours(1));
        absl::Notification called;
        shutdown.OnSignal([&] { called.Notify(); });
        kill(getpid(), SIGTERM);
        called.WaitForNotification();
        kill(getpid(), SIGTERM);
        shutdown.OnSignal([] { _exit(7); });  // Of the first: it is not forgotten.
        pause();
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(ShutdownTest, AClosedTerminalIsAWishToEndAndNoSecondOne) {
  EXPECT_EXIT(
      {
        ShutdownSignal shutdown(absl::ZeroDuration());
        absl::Notification called;
        shutdown.OnSignal([&] { called.Notify(); });
        kill(getpid(), SIGHUP);
        called.WaitForNotification();
        kill(getpid(), SIGHUP);  // From the kernel and from the shell.
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(ShutdownTest, UnderNohupAClosedTerminalMeansNothing) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        ShutdownSignal shutdown;
        shutdown.OnSignal([] { _exit(7); });
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        while (!shutdown.signalled()) std::this_thread::yield();
        pause();
      },
      testing::ExitedWithCode(7), "");
}

// Its main thread hangs, and nobody handles SIGTERM.
TEST_F(ShutdownTest, AnOrphanThatHangsEndsAfterTheLimit) {
  EXPECT_EXIT(
      {
        setenv("SKEIN_PARENT_PID", std::to_string(getppid() + 1).c_str(), 1);
        ShutdownSignal shutdown;
        ExitWithParent(absl::Milliseconds(20));
        while (true) pause();
      },
      testing::ExitedWithCode(75), "");
}

TEST_F(ShutdownTest, ChildOfAnotherParentEndsAtOnce) {
  EXPECT_EXIT(
      {
        setenv("SKEIN_PARENT_PID", std::to_string(getppid() + 1).c_str(), 1);
        ExitWithParent();
        _exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(ShutdownTest, ChildOfItsParentGoesOn) {
  EXPECT_EXIT(
      {
        setenv("SKEIN_PARENT_PID", std::to_string(getppid()).c_str(), 1);
        ExitWithParent();
        _exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace skein
