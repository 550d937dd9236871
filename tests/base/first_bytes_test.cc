// SPDX-License-Identifier: Apache-2.0
#include "base/net/first_bytes.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class FirstBytesTest : public testing::Test {
 protected:
  explicit FirstBytesTest(bool tls = false)
      : new_connections_({.port = 7070, .tls = tls}, [this](int listener, int connection) {
          EXPECT_EQ(listener, 5);
          taken_.push_back(connection);
        }) {}
  ~FirstBytesTest() override {
    for (const int fd : taken_) close(fd);
    close(ours_);
  }

  // A connection whose other end is ours_.
  int Connect() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    if (ours_ >= 0) close(ours_);
    ours_ = ends[0];
    new_connections_.Add(5, ends[1], now_);
    return ends[1];
  }
  void Say(const std::string& bytes) {
    EXPECT_EQ(send(ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Serves what is there; returns how many connections wait on.
  size_t Serve() {
    std::vector<pollfd> polled;
    new_connections_.AppendTo(&polled);
    poll(polled.data(), polled.size(), 0);
    new_connections_.Serve(polled.data(), now_);
    polled.clear();
    new_connections_.AppendTo(&polled);
    return polled.size();
  }
  bool Closed() {
    char byte;
    return recv(ours_, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
  }

  absl::Duration now_ = absl::Seconds(1000);
  std::vector<int> taken_;
  int ours_ = -1;
  FirstBytes new_connections_;
};

class FirstBytesOfTls : public FirstBytesTest {
 protected:
  FirstBytesOfTls() : FirstBytesTest(true) {}
};

TEST_F(FirstBytesTest, WhoSpeaksHttp2IsHandedOnWithAllThatWasSaid) {
  const int connection = Connect();
  Say(std::string(kPreface) + "more");
  EXPECT_EQ(Serve(), 0u);
  ASSERT_THAT(taken_, ElementsAre(connection));
  char bytes[64];
  EXPECT_EQ(recv(connection, bytes, sizeof(bytes), 0), 28);  // 24 + 4.
}

TEST_F(FirstBytesTest, WaitsForTheWholePreface) {
  Connect();
  EXPECT_EQ(Serve(), 1u);
  Say("PRI * HT");
  EXPECT_EQ(Serve(), 1u);
  EXPECT_THAT(taken_, IsEmpty());
  Say(std::string(kPreface).substr(8));
  EXPECT_EQ(Serve(), 0u);
  EXPECT_EQ(taken_.size(), 1u);
}

TEST_F(FirstBytesTest, OtherBytesAreTheEnd) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("POST"), std::string("\x16\x03\x01\x02\x00"),
        std::string("PRx"), std::string(64, '\0'), std::string("PRI * HTTP/1.0\r\n\r\nSM\r\n\r\n")}) {
    Connect();
    Say(bytes);
    EXPECT_EQ(Serve(), 0u) << bytes;
    EXPECT_TRUE(Closed()) << bytes;
  }
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(FirstBytesTest, WhoLeavesIsForgotten) {
  Connect();
  shutdown(ours_, SHUT_WR);
  EXPECT_EQ(Serve(), 0u);
  Connect();
  Say("PRI");
  shutdown(ours_, SHUT_WR);
  EXPECT_EQ(Serve(), 0u);
  EXPECT_TRUE(Closed());
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(FirstBytesTest, WhoSaysTooLittleForTenSecondsIsClosed) {
  EXPECT_EQ(new_connections_.TimeoutMillis(now_), -1);
  Connect();
  Say("PRI");
  EXPECT_EQ(Serve(), 1u);
  now_ += absl::Seconds(4);
  EXPECT_EQ(new_connections_.TimeoutMillis(now_), 6001);
  EXPECT_EQ(Serve(), 1u);
  now_ += absl::Seconds(6);
  EXPECT_EQ(new_connections_.TimeoutMillis(now_), 1);
  EXPECT_EQ(Serve(), 0u);
  EXPECT_TRUE(Closed());
}

TEST_F(FirstBytesOfTls, AHandshakeIsHandedOnAndPlainTextIsNot) {
  Connect();
  Say(std::string("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_EQ(Serve(), 0u);
  EXPECT_EQ(taken_.size(), 1u);
  Connect();
  Say(kPreface);
  EXPECT_EQ(Serve(), 0u);
  EXPECT_TRUE(Closed());
  EXPECT_EQ(taken_.size(), 1u);
}

}  // namespace
}  // namespace skein
