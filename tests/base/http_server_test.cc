// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A connection to 127.0.0.1 on which `text` has been sent.
int Say(int port, const std::string& text) {
  const int fd = ConnectTo(port);
  EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  return fd;
}

// The whole answer to one request on 127.0.0.1; what came in 20 s, if it is not whole then.
std::string Request(int port, const std::string& method_and_path, const std::string& headers = "") {
  const int fd = Say(port, method_and_path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  std::string answer;
  char chunk[4096];
  for (ssize_t got = 0; (got = recv(fd, chunk, sizeof(chunk), 0)) > 0;) answer.append(chunk, got);
  close(fd);
  return answer;
}

std::unique_ptr<HttpServer> ListenOnLoopback() {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen("127.0.0.1:0");
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpServer, AnswersWithItsHandlersResponse) {
  const auto server = ListenOnLoopback();
  ASSERT_GT(server->port(), 0);
  server->Handle("/status", [] { return HttpServer::Response{503, "application/json", "{}"}; });
  const std::string answer = Request(server->port(), "GET /status?x=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n{}"));
}

TEST(HttpServer, AnswersLargePagesWhole) {
  const auto server = ListenOnLoopback();
  server->Handle("/", [] { return HttpServer::Response{200, "text/plain", std::string(3 << 20, 'x') + "end"}; });
  EXPECT_THAT(Request(server->port(), "GET /"), EndsWith("xxend"));
}

TEST(HttpServer, APageIsSentOnceHoweverOftenPartsOfItAreAskedFor) {
  const auto server = ListenOnLoopback();
  server->Handle("/", [] { return HttpServer::Response{200, "text/plain", std::string(1000, 'x')}; });
  std::string ranges = "Range: bytes=0-";
  for (int i = 0; i < 100; ++i) ranges += ",0-";
  for (const std::string& header : {ranges, std::string("Range: bytes=0-9")}) {
    const std::string answer = Request(server->port(), "GET /", header + "\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 1000\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n" + std::string(1000, 'x')));
  }
}

TEST(HttpServer, OtherPathsAreNotFound) {
  const auto server = ListenOnLoopback();
  server->Handle("/status", [] { return HttpServer::Response{200, "text/plain", ""}; });
  for (const char* path : {"/", "/status/", "/statusx", "/../etc/passwd", "/CMakeLists.txt"}) {
    EXPECT_THAT(Request(server->port(), absl::StrCat("GET ", path)), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST(HttpServer, OtherMethodsAreNotAllowed) {
  const auto server = ListenOnLoopback();
  server->Handle("/status", [] { return HttpServer::Response{200, "text/plain", ""}; });
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS"}) {
    const std::string answer = Request(server->port(), absl::StrCat(method, " /status"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET\r\n")) << method;
  }
}

TEST(HttpServer, ServesMetricsAsPrometheusText) {
  const auto server = ListenOnLoopback();
  const auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter().Name("skein_tests_total").Help("Tests.").Register(*registry).Add({}).Increment(3);
  server->ServeMetrics(registry);
  const std::string answer = Request(server->port(), "GET /metrics");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer, HasSubstr("# TYPE skein_tests_total counter\nskein_tests_total 3\n"));
}

TEST(HttpServer, ListensOnAHostName) {
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen("localhost:0");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->port(), 0);
}

TEST(HttpServer, ListensOnAllInterfacesWithoutAHost) {
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen(":0", {.insecure = true});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Request((*server)->port(), "GET /"), StartsWith("HTTP/1.1 404 "));
}

TEST(HttpServer, PublicAddressesNeedCredentials) {
  EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Listen("0.0.0.0:0").status()));
}

TEST(HttpServer, AsksForTheTokenButAtHealthChecks) {
  const auto server = HttpServer::Listen("127.0.0.1:0", {.token = "0123456789abcdef"});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  (*server)->Handle("/status", [] { return HttpServer::Response{200, "text/plain", "state\n"}; });
  (*server)->Handle("/healthz", [] { return HttpServer::Response{200, "text/plain", "ok\n"}; });
  const std::string refused = Request(port, "GET /status");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Basic realm=\"skein\"\r\n"));
  EXPECT_THAT(refused, Not(HasSubstr("state")));
  EXPECT_THAT(Request(port, "GET /nowhere"), StartsWith("HTTP/1.1 401 "));  // Not even which pages there are.
  EXPECT_THAT(Request(port, "GET /status", "Authorization: Bearer 0123456789abcdeg\r\n"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Request(port, "GET /status", "Authorization: Bearer 0123456789abcdef\r\n"), StartsWith("HTTP/1.1 200 "));
  // "anybody:0123456789abcdef"
  EXPECT_THAT(Request(port, "GET /status", "Authorization: Basic YW55Ym9keTowMTIzNDU2Nzg5YWJjZGVm\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Request(port, "GET /healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, BusyPortIsUnavailable) {
  const auto server = ListenOnLoopback();
  const absl::Status status = HttpServer::Listen(absl::StrCat("127.0.0.1:", server->port())).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("port ", server->port(), " is in use")));
}

TEST(HttpServer, ForeignAddressIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(HttpServer::Listen("192.0.2.1:0", {.insecure = true}).status()));
}

TEST(HttpServer, AddressWithoutPortIsAnInvalidArgument) {
  EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Listen("localhost").status()));
}

TEST(HttpServer, ClosingWaitsForHandlers) {
  auto server = ListenOnLoopback();
  absl::Notification entered;
  absl::Notification release;
  std::atomic<bool> finished = false;
  server->Handle("/slow", [&] {
    entered.Notify();
    release.WaitForNotification();
    finished = true;
    return HttpServer::Response{200, "text/plain", "done"};
  });
  std::thread client([port = server->port()] { Request(port, "GET /slow"); });
  entered.WaitForNotification();
  std::thread closer([&] {
    server.reset();
    EXPECT_TRUE(finished);
  });
  release.Notify();
  closer.join();
  client.join();
}

// Each of them a part of a request, then nothing. With so many seconds for each and a few threads it would be minutes
// before anybody else is answered.
TEST(HttpServer, SlowClientsHoldNobodyUp) {
  const auto server = ListenOnLoopback();
  server->Handle("/metrics", [] { return HttpServer::Response{200, "text/plain", "all of them"}; });
  std::vector<int> slow;
  for (int i = 0; i < 200; ++i)
    slow.push_back(Say(server->port(), i % 2 == 0 ? "GET /metrics HTTP/1.1\r\nHost: " : ""));
  EXPECT_THAT(Request(server->port(), "GET /metrics"), EndsWith("all of them"));
  for (const int fd : slow) close(fd);
}

TEST(HttpServer, RequestsWithoutAnEndAreNotReadOn) {
  const auto server = ListenOnLoopback();
  const std::string line = "X: " + std::string(1000, 'x') + "\r\n";
  std::string headers;
  while (headers.size() < size_t{1} << 20) headers += line;
  const int fd = Say(server->port(), "GET / HTTP/1.1\r\n");
  // Before it is all sent the server has closed the connection.
  ssize_t sent = 0;
  for (int i = 0; i < 100 && sent >= 0; ++i) sent = send(fd, headers.data(), headers.size(), MSG_NOSIGNAL);
  EXPECT_LT(sent, 0);
  close(fd);
}

TEST(HttpServer, ClosingDoesNotWaitForSlowClients) {
  auto server = ListenOnLoopback();
  const int fd = Say(server->port(), "GET / HTTP/1.1\r\nX: ");
  std::thread client([fd] {
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(10));
  });
  EXPECT_THAT(Request(server->port(), "GET /"), StartsWith("HTTP/1.1 404 "));  // The other is being served, too.
  server.reset();
  client.join();
  close(fd);
}

}  // namespace
}  // namespace skein
