// SPDX-License-Identifier: Apache-2.0
#include "base/net/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

void ExpectParsed(const std::string& address, const std::string& host, int port) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->host, host);
  EXPECT_EQ(parsed->port, port);
}

TEST(HostPort, ParsesNamesNumbersAndBrackets) {
  ExpectParsed("127.0.0.1:7070", "127.0.0.1", 7070);
  ExpectParsed("head.example:0", "head.example", 0);
  ExpectParsed("[::1]:65535", "::1", 65535);
  ExpectParsed(":80", "", 80);
}

TEST(HostPort, RefusesWhatIsNotHostAndPort) {
  for (const char* address :
       {"", "localhost", "localhost:", "localhost:65536", "localhost:-1", "localhost:+1", "localhost:7x",
        "localhost: 7", "::1:70", "[::1:70", "[]:70", "a b:70", "http://a:70", "a]:70", "a:99999999999999999999"}) {
    const absl::Status status = ParseHostPort(address).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("'") + address + "'"));
  }
}

TEST(HostPort, JoinsWithBracketsWhereNeeded) {
  EXPECT_EQ(JoinHostPort("127.0.0.1", 1), "127.0.0.1:1");
  EXPECT_EQ(JoinHostPort("::1", 2), "[::1]:2");
  EXPECT_EQ(JoinHostPort("", 3), ":3");
}

// A listening socket on 127.0.0.1.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~Listener() { close(fd_); }
  int port() const { return ntohs(address_.sin_port); }

 private:
  int fd_;
  sockaddr_in address_ = {};
};

TEST(HostPort, BusyPortCannotBeListenedOn) {
  const Listener busy;
  for (const char* host : {"127.0.0.1", ""}) {
    const absl::Status status = CheckCanListen({host, busy.port()});
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("port " + std::to_string(busy.port()) + " is in use"));
  }
}

TEST(HostPort, FreePortCanBeListenedOn) {
  EXPECT_TRUE(CheckCanListen({"127.0.0.1", 0}).ok());
  EXPECT_TRUE(CheckCanListen({"", 0}).ok());
}

TEST(HostPort, ForeignAddressCannotBeListenedOn) {
  // 192.0.2.0/24 is set aside for documentation.
  const absl::Status status = CheckCanListen({"192.0.2.1", 0});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1:0"));
}

TEST(HostPort, AListOfAddressesIsTakenApart) {
  const auto addresses = ParseAddresses("node1:7070,[fd00::7]:7071");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, testing::ElementsAre("node1:7070", "[fd00::7]:7071"));
  EXPECT_EQ(FirstAddress("node1:7070,node2:7070"), "node1:7070");
  EXPECT_EQ(FirstAddress("node1:7070"), "node1:7070");
  for (const char* bad : {"", "node1:7070,", "node1", "node1:0", ":7070", "node1:7070,node2:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAddresses(bad).status())) << bad;
  }
}

TEST(HostPort, KnowsLoopbackAndWildcard) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"10.0.0.7", "", "node1", "0.0.0.0", "127.example.org"})
    EXPECT_FALSE(IsLoopback(host)) << host;
  for (const char* host : {"", "0.0.0.0", "::", "[::]"}) EXPECT_TRUE(IsWildcard(host)) << host;
  for (const char* host : {"node1", "127.0.0.1", "::1"}) EXPECT_FALSE(IsWildcard(host)) << host;
}

}  // namespace
}  // namespace skein
