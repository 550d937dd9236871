// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/listener.h"

#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

// Whether somebody listens on that IPv4 address of this node.
bool IsOpen(uint32_t host, int port) {
  const int descriptor = ConnectTo(port, host);
  if (descriptor < 0) return false;
  close(descriptor);
  return true;
}

TEST(Listener, ListensThereAndNowhereElse) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto listener = ListenOn(host, 0, 1);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_GT(listener->port, 0);
    EXPECT_FALSE(IsOpen(INADDR_LOOPBACK + 1, listener->port));
    close(listener->descriptor);
  }
  const auto listener = ListenOn("127.0.0.2", 0, 1);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(IsOpen(INADDR_LOOPBACK + 1, listener->port));
  EXPECT_FALSE(IsOpen(INADDR_LOOPBACK, listener->port));
  close(listener->descriptor);
}

TEST(Listener, IsUnavailableWhereItCannotListen) {
  const auto first = ListenOn("127.0.0.1", 0, 1);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status taken = ListenOn("127.0.0.1", first->port, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_THAT(std::string(taken.message()), testing::HasSubstr("listening on 127.0.0.1 port "));
  close(first->descriptor);
  EXPECT_TRUE(absl::IsUnavailable(ListenOn("192.0.2.1", 0, 1).status()));  // Nobody's.
  EXPECT_TRUE(absl::IsUnavailable(ListenOn("no such host", 0, 1).status()));
}

}  // namespace
}  // namespace skein
