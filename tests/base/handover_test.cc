// SPDX-License-Identifier: Apache-2.0
#include "base/net/handover.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

int AnyFile() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(Handover, GivesConnectionsInOrderAndTheyStayOpen) {
  const int first = AnyFile(), second = AnyFile();
  std::vector<int> given, listeners;
  absl::Notification both;
  Handover handover([&](const AcceptedConnection& one) {
    given.push_back(one.socket);
    listeners.push_back(one.listener);
    if (given.size() == 2) both.Notify();
    return true;
  });
  handover.Add({7, first});
  handover.Add({8, second});
  both.WaitForNotification();
  handover.Stop();
  EXPECT_THAT(given, ElementsAre(first, second));
  EXPECT_THAT(listeners, ElementsAre(7, 8));
  for (const int fd : given) {
    EXPECT_TRUE(IsOpen(fd));
    close(fd);
  }
}

TEST(Handover, ClosesWhatNobodyTakes) {
  const int refused = AnyFile();
  absl::Notification asked;
  Handover handover([&](const AcceptedConnection&) {
    asked.Notify();
    return false;
  });
  handover.Add({7, refused});
  asked.WaitForNotification();
  handover.Stop();
  EXPECT_FALSE(IsOpen(refused));
}

TEST(Handover, AddsWhileAnotherConnectionTakesLongAndClosesWhatIsLeftAtItsStop) {
  const int slow = AnyFile(), next = AnyFile(), late = AnyFile();
  absl::Notification begun, end;
  std::atomic<int> given{0};
  Handover handover([&](const AcceptedConnection&) {
    if (++given == 1) begun.Notify();
    end.WaitForNotification();
    return true;
  });
  handover.Add({7, slow});
  begun.WaitForNotification();
  handover.Add({7, next});  // Returns.
  std::thread stopping([&] { handover.Stop(); });
  end.Notify();
  stopping.join();
  handover.Add({7, late});
  handover.Stop();
  EXPECT_TRUE(IsOpen(slow));
  EXPECT_FALSE(IsOpen(late));
  EXPECT_LE(given, 2);  // Whether the second was given depends on which thread came first.
  EXPECT_EQ(IsOpen(next), given == 2);
  close(slow);
  if (given == 2) close(next);
}

}  // namespace
}  // namespace skein
