// SPDX-License-Identifier: Apache-2.0
#include "base/net/timed_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(100);
constexpr absl::Duration kLong = absl::Seconds(20);

// Both ends of a connection.
struct Pair {
  explicit Pair(absl::Duration time) {
    std::array<int, 2> ends;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    socket = std::make_unique<TimedSocket>(ends[0], nullptr, MonotonicNow() + time);
    server = ends[0];
    client = ends[1];
  }
  ~Pair() { close(client); }

  std::unique_ptr<TimedSocket> socket;
  int server = -1, client = -1;
};

TEST(TimedSocket, CarriesBothWays) {
  const Pair pair(kLong);
  EXPECT_TRUE(pair.socket->Open());
  EXPECT_EQ(pair.socket->ssl(), nullptr);
  ASSERT_EQ(send(pair.client, "ab", 2, 0), 2);
  char text[8];
  EXPECT_EQ(pair.socket->Read(text, sizeof(text)), 2);
  EXPECT_EQ(std::string(text, 2), "ab");

  // More than the kernel takes at once.
  const std::string large(size_t{3} << 20, 'x');
  std::string received;
  std::thread client([&] {
    std::array<char, 65536> some;
    for (ssize_t got = 0; (got = recv(pair.client, some.data(), some.size(), 0)) > 0;) {
      received.append(some.data(), static_cast<size_t>(got));
      if (received.size() == large.size()) return;
    }
  });
  EXPECT_TRUE(pair.socket->Write(large.data(), large.size()));
  client.join();
  EXPECT_EQ(received, large);

  shutdown(pair.client, SHUT_WR);
  EXPECT_EQ(pair.socket->Read(text, sizeof(text)), 0);
}

TEST(TimedSocket, AClientThatSendsAByteNowAndThenGainsNoTime) {
  Pair pair(kShort);
  std::thread client([&] {
    while (send(pair.client, "x", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(1));
  });
  char text[8];
  ssize_t got = 0;
  const absl::Duration give_up = MonotonicNow() + kLong;
  while ((got = pair.socket->Read(text, sizeof(text))) > 0 && MonotonicNow() < give_up) continue;
  EXPECT_EQ(got, -1);
  pair.socket.reset();
  client.join();
}

TEST(TimedSocket, AClientThatTakesNothingGainsNoTime) {
  const Pair pair(kShort);
  const std::string large(size_t{64} << 20, 'x');
  EXPECT_FALSE(pair.socket->Write(large.data(), large.size()));
}

TEST(TimedSocket, CanBeGivenMoreTime) {
  const Pair pair(absl::ZeroDuration());
  ASSERT_EQ(send(pair.client, "ab", 2, 0), 2);
  char text[8];
  EXPECT_EQ(pair.socket->Read(text, sizeof(text)), -1);
  pair.socket->set_deadline(MonotonicNow() + kLong);
  EXPECT_EQ(pair.socket->Read(text, sizeof(text)), 2);
}

TEST(TimedSocket, AnotherThreadCanEndIt) {
  const Pair pair(absl::Hours(1));
  std::thread other([&] { shutdown(pair.server, SHUT_RDWR); });
  char text[8];
  EXPECT_LE(pair.socket->Read(text, sizeof(text)), 0);
  other.join();
}

}  // namespace
}  // namespace skein
