// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "gtest/gtest.h"
#include "tests/testing/http_get.h"
#include "tests/testing/loopback.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using Direction = FaultProxy::Direction;

// A client and a server with the proxy between them.
class FaultProxyTest : public testing::Test {
 protected:
  FaultProxyTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), proxy_(Listen()) {}
  ~FaultProxyTest() override {
    for (int fd : {client_, server_, listener_}) {
      if (fd >= 0) close(fd);
    }
  }
  void Connect() {
    client_ = ConnectTo(ParseHostPort(proxy_.address())->port);
    ASSERT_GE(client_, 0);
    server_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(server_, 0);
  }
  // What arrives until there are `size` bytes, the stream ends ("$" is added) or breaks ("!" is added).
  static std::string Receive(int fd, size_t size) {
    std::string got;
    while (got.size() < size) {
      char byte;
      pollfd poll_fd = {fd, POLLIN, 0};
      if (poll(&poll_fd, 1, 20000) != 1) return got + "?";
      const ssize_t read_size = read(fd, &byte, 1);
      if (read_size < 0) return got + "!";
      if (read_size == 0) return got + "$";
      got += byte;
    }
    return got;
  }
  static bool IsSilent(int fd) {
    pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, 50) == 0;
  }
  static void Send(int fd, const std::string& text) {
    ASSERT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  int listener_ = -1;
  FaultProxy proxy_;
  int client_ = -1, server_ = -1;

 private:
  std::string Listen() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
};

TEST_F(FaultProxyTest, PassesBytesAndOrderlyEndsBothWays) {
  Connect();
  Send(client_, "hello");
  EXPECT_EQ(Receive(server_, 5), "hello");
  shutdown(client_, SHUT_WR);
  EXPECT_EQ(Receive(server_, 1), "$");
  Send(server_, "bye");
  EXPECT_EQ(Receive(client_, 3), "bye");
  shutdown(server_, SHUT_WR);
  EXPECT_EQ(Receive(client_, 1), "$");
  EXPECT_TRUE(WaitUntil([&] { return proxy_.open_connections() == 0; }));
  EXPECT_EQ(proxy_.connections(), 1);
  EXPECT_EQ(proxy_.bytes_to_server(), 5u);
}

TEST_F(FaultProxyTest, SwallowsOneDirectionUntilItHealsWithAReset) {
  Connect();
  proxy_.Swallow(Direction::kToServer);
  Send(client_, "lost");
  EXPECT_TRUE(IsSilent(server_));
  Send(server_, "told");
  EXPECT_EQ(Receive(client_, 4), "told");
  close(client_);
  client_ = -1;
  EXPECT_TRUE(IsSilent(server_));  // Half open: its end is swallowed too.
  proxy_.Heal();
  EXPECT_EQ(Receive(server_, 1), "!");
}

TEST_F(FaultProxyTest, AConnectionThatLostNothingOutlivesAFault) {
  Connect();
  proxy_.Swallow(Direction::kBoth);
  EXPECT_TRUE(IsSilent(server_));
  proxy_.Heal();
  Send(client_, "hello");
  EXPECT_EQ(Receive(server_, 5), "hello");
}

TEST_F(FaultProxyTest, CutResetsBothSides) {
  Connect();
  proxy_.Cut();
  EXPECT_EQ(Receive(client_, 1), "!");
  EXPECT_EQ(Receive(server_, 1), "!");
}

TEST_F(FaultProxyTest, DelaysAndKeepsTheOrder) {
  Connect();
  proxy_.Delay(Direction::kToServer, absl::Milliseconds(100));
  const absl::Time begin = absl::Now();
  Send(client_, "a");
  Send(client_, "b");
  EXPECT_EQ(Receive(server_, 2), "ab");
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(100));
}

TEST_F(FaultProxyTest, LimitsTheRate) {
  Connect();
  proxy_.LimitRate(Direction::kToServer, 100'000);
  const absl::Time begin = absl::Now();
  Send(client_, std::string(30'000, 'x'));
  EXPECT_EQ(Receive(server_, 30'000).size(), 30'000u);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(240));  // 0.3 s less 0.05 s that may come at once.
}

TEST_F(FaultProxyTest, RefusesNewConnectionsUntilItHeals) {
  proxy_.Refuse();
  client_ = ConnectTo(ParseHostPort(proxy_.address())->port);
  ASSERT_GE(client_, 0);
  EXPECT_EQ(Receive(client_, 1), "!");
  close(client_);
  proxy_.Heal();
  Connect();
  Send(client_, "x");
  EXPECT_EQ(Receive(server_, 1), "x");
}

TEST_F(FaultProxyTest, ClosesWhatCannotReachItsUpstream) {
  proxy_.SetUpstream("127.0.0.1:1");
  client_ = ConnectTo(ParseHostPort(proxy_.address())->port);
  ASSERT_GE(client_, 0);
  EXPECT_EQ(Receive(client_, 1), "!");
}

}  // namespace
}  // namespace skein
