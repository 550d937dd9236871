// SPDX-License-Identifier: Apache-2.0
#include "base/net/held_connections.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace skein {
namespace {

const std::string kOffender("\x0a\0\0\x07", 4), kOther("\x0a\0\0\x08", 4);
constexpr absl::Duration kNow = absl::Seconds(100);

int AnyFile() { return eventfd(0, EFD_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// Penalized for 10 s, one connection every second, held for 3 s at most.
HeldConnections::Options Options() {
  return {.penalty = absl::Seconds(10), .spacing = absl::Seconds(1), .longest = absl::Seconds(3), .addresses = 2};
}

TEST(HeldConnections, DelaysNobodyWithoutAnOffence) {
  HeldConnections held(Options());
  EXPECT_FALSE(held.Hold({0, 1000}, kOffender, kNow));
  EXPECT_EQ(held.TimeoutMillis(kNow), -1);
  held.Penalize(kOffender, kNow);
  EXPECT_FALSE(held.Hold({0, 1000}, kOther, kNow));
}

TEST(HeldConnections, GivesAnOffenderOneConnectionAtATime) {
  HeldConnections held(Options());
  held.Penalize(kOffender, kNow);
  const int first = AnyFile(), second = AnyFile();
  EXPECT_TRUE(held.Hold({7, first}, kOffender, kNow));
  EXPECT_TRUE(held.Hold({7, second}, kOffender, kNow));
  EXPECT_TRUE(held.TakeDue(kNow).empty());
  EXPECT_EQ(held.TimeoutMillis(kNow), 1001);
  auto due = held.TakeDue(kNow + absl::Seconds(1));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].socket, first);
  EXPECT_EQ(due[0].listener, 7);
  due = held.TakeDue(kNow + absl::Seconds(2));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].socket, second);
  close(first);
  close(second);
}

TEST(HeldConnections, ClosesWhatWouldWaitTooLong) {
  HeldConnections held(Options());
  held.Penalize(kOffender, kNow);
  int files[4];
  for (int& file : files) {
    file = AnyFile();
    EXPECT_TRUE(held.Hold({0, file}, kOffender, kNow));
  }
  EXPECT_TRUE(IsOpen(files[2]));   // After 3 s.
  EXPECT_FALSE(IsOpen(files[3]));  // After 4 s.
  for (const auto& due : held.TakeDue(kNow + absl::Seconds(4))) close(due.socket);
}

TEST(HeldConnections, ForgivesAfterThePenaltyAndClosesWhatItStillHolds) {
  int file = -1;
  {
    HeldConnections held(Options());
    held.Penalize(kOffender, kNow);
    EXPECT_FALSE(held.Hold({0, 1000}, kOffender, kNow + absl::Seconds(11)));
    held.Penalize(kOffender, kNow);
    file = AnyFile();
    EXPECT_TRUE(held.Hold({0, file}, kOffender, kNow));
  }
  EXPECT_FALSE(IsOpen(file));
}

TEST(HeldConnections, CountsTheFirstHalfOfAnIpv6Address) {
  const std::string site("\xfd\0\0\0\0\0\0\1", 8), other_site("\xfd\0\0\0\0\0\0\2", 8);
  HeldConnections held(Options());
  held.Penalize(site + std::string(8, '\1'), kNow);
  const int file = AnyFile();
  EXPECT_TRUE(held.Hold({0, file}, site + std::string(8, '\2'), kNow));
  EXPECT_FALSE(held.Hold({0, 1000}, other_site + std::string(8, '\1'), kNow));
}

TEST(HeldConnections, RemembersTheLatestOffenders) {
  HeldConnections held(Options());
  const std::string third("\x0a\0\0\x09", 4);
  held.Penalize(kOffender, kNow);
  held.Penalize(kOther, kNow + absl::Seconds(1));
  held.Penalize(third, kNow + absl::Seconds(2));
  EXPECT_FALSE(held.Hold({0, 1000}, kOffender, kNow + absl::Seconds(2)));
  const int file = AnyFile();
  EXPECT_TRUE(held.Hold({0, file}, third, kNow + absl::Seconds(2)));
}

}  // namespace
}  // namespace skein
