// SPDX-License-Identifier: Apache-2.0
// Who speaks something else at each port of real processes.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/secured_cluster.h"
#include "tests/testing/http_get.h"
#include "tests/testing/loopback.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

const char kHttp1[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const char kHttp2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// The record and the handshake's header of a ClientHello, and what could follow.
std::string ClientHello() {
  return std::string("\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11) + std::string(245, 'r');
}
std::string Noise() { return std::string("\0\xff\x80\r\n\r\n", 7) + std::string(500, '\x01'); }

// Whether the other side closes after `bytes`, within twenty seconds; what it said until then.
testing::AssertionResult IsClosedAfter(int port, const std::string& bytes, std::string* answer = nullptr) {
  const int fd = ConnectTo(port);
  if (fd < 0) return testing::AssertionFailure() << "no connection to port " << port;
  const timeval limit = {20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string said;
  char chunk[4096];
  ssize_t size = 0;
  while ((size = recv(fd, chunk, sizeof(chunk), 0)) > 0) said.append(chunk, static_cast<size_t>(size));
  const bool closed = size == 0 || errno == ECONNRESET;
  close(fd);
  if (answer != nullptr) *answer = said;
  if (closed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "port " << port << " is open still, having said " << said.size() << " bytes";
}

// The same for each of these ports and texts, at once: a server may wait some seconds for more.
void ExpectClosedAfter(const std::vector<int>& ports, const std::vector<std::string>& texts,
                       const std::function<void(const std::string& answer)>& check) {
  std::vector<std::thread> clients;
  for (const int port : ports) {
    for (const std::string& text : texts) {
      clients.emplace_back([port, text, check] {
        std::string answer;
        EXPECT_TRUE(IsClosedAfter(port, text, &answer)) << text.substr(0, 10);
        check(answer);
      });
    }
  }
  for (std::thread& client : clients) client.join();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The ports of a run, by what they are for.
struct Ports {
  explicit Ports(SecuredCluster* run) {
    Cluster& cluster = run->cluster();
    const auto port = [](const std::string& text, const std::string& pattern) {
      const std::string found = FirstMatch(text, pattern);
      EXPECT_FALSE(found.empty()) << pattern;
      return found.empty() ? 0 : std::stoi(found);
    };
    const std::string coordinator = cluster.coordinator().Output(), learner = cluster.learner().Output();
    grpc = {port(coordinator, "grpc=\\S+:(\\d+)"), port(learner, "data=\\S+:(\\d+)")};
    const auto status = cluster.Status();
    EXPECT_TRUE(status.ok()) << status.status();
    http = {port(coordinator, "http=https?://[^/]+:(\\d+)/"), port(learner, "metrics=\\S+:(\\d+)")};
    for (const v1::MemberStatus& member : status->members()) {
      if (member.role() == "actor") http.push_back(port(member.metrics_address(), ":(\\d+)"));
    }
    EXPECT_EQ(http.size(), 3u);
  }
  std::vector<int> grpc, http;
};

bool MakesProgress(Cluster* cluster) {
  const auto before = cluster->Status();
  return before.ok() && cluster->WaitForStatus([&](const v1::StatusResponse& now) {
    return now.members_size() == 2 && now.progress().policy_version() > before->progress().policy_version() + 1;
  });
}

TEST(FaultRow25, PlainPortsCloseWhatIsNotTheirProtocol) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const Ports ports(&run);
  ExpectClosedAfter(ports.grpc, {kHttp1, ClientHello(), Noise(), "x"},
                    [](const std::string& answer) { EXPECT_EQ(answer, ""); });  // Not even gRPC's settings.
  ExpectClosedAfter(ports.http, {kHttp2, ClientHello(), Noise()}, [](const std::string&) {});
  EXPECT_TRUE(MakesProgress(&run.cluster()));
}

TEST(FaultRow25, TlsPortsCloseWhatIsNotTls) {
  SecuredCluster run(true);
  ASSERT_TRUE(run.Trains());
  const Ports ports(&run);
  const auto no_http = [](const std::string& answer) { EXPECT_THAT(answer, testing::Not(testing::HasSubstr("HTTP"))); };
  for (const std::vector<int>& some : {ports.grpc, ports.http}) {
    ExpectClosedAfter(some, {kHttp1, kHttp2, Noise(), ClientHello()}, no_http);
  }
  EXPECT_TRUE(MakesProgress(&run.cluster()));
}

TEST(FaultRow25, TheLogHasOneLineForManyOfThem) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const Ports ports(&run);
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 100; ++i) {
    for (const int port : ports.grpc) EXPECT_TRUE(IsClosedAfter(port, kHttp1));
    for (const int port : ports.http) EXPECT_TRUE(IsClosedAfter(port, Noise()));
  }
  // One line in ten seconds, and one more for each that has begun.
  const size_t most = 1 + static_cast<size_t>((absl::Now() - begin) / absl::Seconds(10)) + 1;
  Cluster& cluster = run.cluster();
  for (const Running* process : {&cluster.coordinator(), &cluster.learner()}) {
    WaitUntil(
        [&] { return Count(process->Output(), "closed a connection from 127.0.0.1 that began with HTTP/1") > 0; });
    EXPECT_LE(Count(process->Output(), "that began with"), most);
  }
  for (const Running* process : {&cluster.coordinator(), &cluster.learner(), &run.actor()}) {
    WaitUntil([&] { return Count(process->Output(), "closed a connection that made no HTTP request") > 0; });
    EXPECT_LE(Count(process->Output(), "that made no HTTP request"), most);
  }
}

}  // namespace
}  // namespace skein
