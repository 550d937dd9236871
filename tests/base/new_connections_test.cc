// SPDX-License-Identifier: Apache-2.0
#include "base/net/new_connections.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"

namespace skein {
namespace {

const std::string kOne("\x0a\0\0\x07", 4), kOther("\x0a\0\0\x08", 4);

int AnyFile() { return eventfd(0, EFD_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(NewConnections, LetsSoManyOfAnAddressInAndTheNextWhenOneHasSettled) {
  NewConnections connections(2);
  EXPECT_TRUE(connections.Enter({7, 1000}, kOne));
  EXPECT_TRUE(connections.Enter({7, 1001}, kOne));
  EXPECT_FALSE(connections.Enter({7, 1002}, kOne));
  EXPECT_FALSE(connections.Enter({8, 1003}, kOne));
  EXPECT_TRUE(connections.Enter({7, 1004}, kOther));
  EXPECT_FALSE(connections.Settle(kOther).has_value());
  const auto next = connections.Settle(kOne);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->socket, 1002);
  const auto last = connections.Settle(kOne);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->socket, 1003);
  EXPECT_EQ(last->listener, 8);
  EXPECT_FALSE(connections.Settle(kOne).has_value());
  EXPECT_TRUE(connections.Enter({7, 1005}, kOne));
}

TEST(NewConnections, CountsASiteAsOneAddress) {
  const std::string site("\x20\x01\x0d\xb8\0\0\0\x01", 8);
  NewConnections connections(1);
  EXPECT_TRUE(connections.Enter({7, 1000}, site + std::string(8, 'a')));
  EXPECT_FALSE(connections.Enter({7, 1001}, site + std::string(8, 'b')));
  EXPECT_TRUE(connections.Settle(site + std::string(8, 'c')).has_value());
}

TEST(NewConnections, GivesAwayWhatWaits) {
  NewConnections connections(1);
  EXPECT_TRUE(connections.TakeWaiting(kOne).empty());
  EXPECT_TRUE(connections.Enter({7, 1000}, kOne));
  EXPECT_FALSE(connections.Enter({7, 1001}, kOne));
  EXPECT_FALSE(connections.Enter({7, 1002}, kOne));
  const auto waiting = connections.TakeWaiting(kOne);
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].socket, 1001);
  EXPECT_FALSE(connections.Settle(kOne).has_value());
}

TEST(NewConnections, ClosesWhatWaitsAtItsEnd) {
  const int entered = AnyFile(), waiting = AnyFile();
  {
    NewConnections connections(1);
    EXPECT_TRUE(connections.Enter({7, entered}, kOne));
    EXPECT_FALSE(connections.Enter({7, waiting}, kOne));
  }
  EXPECT_TRUE(IsOpen(entered));
  EXPECT_FALSE(IsOpen(waiting));
  close(entered);
}

}  // namespace
}  // namespace skein
