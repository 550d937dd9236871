// SPDX-License-Identifier: Apache-2.0
#include "base/net/grpc_transport.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/base/health_check.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

using testing::HasSubstr;

// Answers a join with the host it names.
class Echo : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest* request, v1::JoinResponse* response) override {
    response->set_member_id(request->host());
    return grpc::Status::OK;
  }
};

absl::Status CallJoin(int port, const std::string& host, v1::JoinResponse* response) {
  const auto stub = v1::Coordinator::NewStub(OpenChannel(JoinHostPort("127.0.0.1", port)));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  v1::JoinRequest request;
  request.set_host(host);
  return FromGrpc(stub->Join(&context, request, response));
}

TEST(GrpcStatus, EveryCodeSurvivesBothConversions) {
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), absl::StrCat("message ", code));
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  EXPECT_EQ(ToGrpc(absl::NotFoundError("x")).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(GrpcServer, AnswersOnThePortItReports) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", &service, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_GT(port, 0);
  v1::JoinResponse response;
  ASSERT_TRUE(CallJoin(port, "hello", &response).ok());
  EXPECT_EQ(response.member_id(), "hello");
}

TEST(GrpcServer, ListensOnAllInterfacesWithoutAHost) {
  Echo service;
  int port = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(StartGrpcServer(":0", &service, &port).status()));
  const auto server = StartGrpcServer(":0", {&service}, &port, {}, {.insecure = true});
  ASSERT_TRUE(server.ok()) << server.status();
  v1::JoinResponse response;
  EXPECT_TRUE(CallJoin(port, "hello", &response).ok());
}

TEST(GrpcServer, BusyPortIsUnavailable) {
  Echo service;
  int port = 0;
  const auto first = StartGrpcServer("127.0.0.1:0", &service, &port);
  ASSERT_TRUE(first.ok()) << first.status();
  Echo other_service;
  int other_port = 0;
  const auto second = StartGrpcServer(JoinHostPort("127.0.0.1", port), &other_service, &other_port);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat("port ", port, " is in use")));
}

TEST(GrpcServer, ForeignAddressIsUnavailable) {
  Echo service;
  int port = 0;
  EXPECT_TRUE(absl::IsUnavailable(StartGrpcServer("192.0.2.1:0", {&service}, &port, {}, {.insecure = true}).status()));
}

TEST(GrpcServer, AddressWithoutPortIsAnInvalidArgument) {
  Echo service;
  int port = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(StartGrpcServer("localhost", &service, &port).status()));
}

TEST(GrpcServer, TakesMessagesUpToTheLimit) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", &service, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  v1::JoinResponse response;
  const std::string large(8 << 20, 'x');  // Above gRPC's own 4 MiB.
  ASSERT_TRUE(CallJoin(port, large, &response).ok());
  EXPECT_EQ(response.member_id().size(), large.size());
  const std::string too_large(kMaxMessageBytes, 'x');  // And a few bytes of field header.
  EXPECT_TRUE(absl::IsResourceExhausted(CallJoin(port, too_large, &response)));
}

TEST(GrpcServer, TakesNoLargerMessagesThanItIsTold) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", {&service}, &port, kControlPlaneLimits);
  ASSERT_TRUE(server.ok()) << server.status();
  v1::JoinResponse response;
  EXPECT_TRUE(CallJoin(port, std::string(1000, 'x'), &response).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(CallJoin(port, std::string(1 << 20, 'x'), &response)));
}

TEST(GrpcServer, TakesAsManyFilesAsItMayHave) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", &service, &port);
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(files.rlim_cur, files.rlim_max);
}

TEST(GrpcServer, ServesSeveralServices) {
  Echo service;
  grpc::Service nothing;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", {&nothing, &service}, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  v1::JoinResponse response;
  EXPECT_TRUE(CallJoin(port, "hello", &response).ok());
}

TEST(GrpcServer, IsAliveFromTheStartAndReadyWhenItIsSaid) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", &service, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(CheckHealth(port, ""), "SERVING");
  EXPECT_EQ(CheckHealth(port, kReadiness), "NOT_SERVING");
  SetReady(server->get(), true);
  EXPECT_EQ(CheckHealth(port, kReadiness), "SERVING");
  SetReady(server->get(), false);
  EXPECT_EQ(CheckHealth(port, kReadiness), "NOT_SERVING");
  EXPECT_EQ(CheckHealth(port, ""), "SERVING");
}

// gRPC reads from a new connection in the thread that hands it over, for as long as bytes come. So another thread
// looks.
TEST(GrpcServer, EndsAConnectionWhoseSettingsNeverEnd) {
  Echo service;
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", {&service}, &port, kControlPlaneLimits);
  ASSERT_TRUE(server.ok()) << server.status();
  const int fd = ConnectTo(port);
  ASSERT_GE(fd, 0);
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings;
  for (int i = 0; i < 1000; ++i) settings += std::string("\0\0\0\4\0\0\0\0\0", 9);  // RFC 9113, section 6.5.
  bytes += settings;
  uint64_t sent = 0;
  char answers[1 << 16];
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (absl::Now() < end &&
         send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size())) {
    sent += bytes.size();
    bytes = settings;
    while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0) {
    }
  }
  EXPECT_LT(absl::Now(), end) << "it took " << (sent >> 20) << " MiB";
  close(fd);
  v1::JoinResponse response;
  EXPECT_TRUE(CallJoin(port, "hello", &response).ok());
}

TEST(GrpcChannel, NobodyThereIsUnavailable) {
  v1::JoinResponse response;
  EXPECT_TRUE(absl::IsUnavailable(CallJoin(1, "hello", &response)));
}

}  // namespace
}  // namespace skein
