// SPDX-License-Identifier: Apache-2.0
#include "launch/status_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "tests/launch/status_server.h"

namespace skein {
namespace {

absl::Status NoAnswerAt(const std::string& address) {
  return absl::UnavailableError("no coordinator answers at " + address +
                                "; `skein train` and `skein head` print the address for --address when they start");
}

TEST(StatusClient, GetsWhatTheCoordinatorSays) {
  v1::StatusResponse status;
  status.set_run_name("cheetah");
  const StatusServer coordinator(status);
  const StatusClient client(coordinator.address());
  for (int i = 0; i < 2; ++i) {
    const auto got = client.Get(absl::Seconds(10));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->run_name(), "cheetah");
  }
}

TEST(StatusClient, DrainPassesOnWhatTheCoordinatorAnswers) {
  const StatusServer coordinator((v1::StatusResponse()));
  const StatusClient client(coordinator.address());
  EXPECT_TRUE(client.Drain("actor-1", absl::Seconds(10)).ok());
  EXPECT_EQ(client.Drain("actor-2", absl::Seconds(10)), absl::NotFoundError("there is only actor-1"));
  EXPECT_EQ(StatusClient("127.0.0.1:1").Drain("actor-1", absl::Seconds(10)), NoAnswerAt("127.0.0.1:1"));
}

TEST(StatusClient, OfSeveralAddressesOneThatAnswersIsEnough) {
  v1::StatusResponse status;
  status.set_run_name("cheetah");
  const StatusServer coordinator(status);
  const StatusClient client("127.0.0.1:1," + coordinator.address());
  const auto got = client.Get(absl::Seconds(10));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->run_name(), "cheetah");
  EXPECT_EQ(StatusClient("127.0.0.1:1,127.0.0.1:2").Get(absl::Seconds(10)).status(),
            NoAnswerAt("127.0.0.1:1,127.0.0.1:2"));
}

TEST(StatusClient, WhereNobodyAnswersIsUnavailable) {
  const auto status = StatusClient("127.0.0.1:1").Get(absl::Seconds(10)).status();
  EXPECT_EQ(status, NoAnswerAt("127.0.0.1:1"));
}

TEST(StatusClient, WhoDoesNotAnswerInTimeIsUnavailable) {
  // The system accepts connections to this socket, but nobody serves them.
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string where = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const auto status = StatusClient(where).Get(absl::Milliseconds(100)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  close(silent);
}

TEST(StatusClient, PassesOnWhatElseIsWrong) {
  // A server that is no coordinator.
  int port = 0;
  v1::Coordinator::Service nothing;
  const auto server = StartGrpcServer("127.0.0.1:0", &nothing, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto status = StatusClient(absl::StrCat("127.0.0.1:", port)).Get(absl::Seconds(10)).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  (*server)->Shutdown();
}

}  // namespace
}  // namespace skein
