// SPDX-License-Identifier: Apache-2.0
#include "cli/status_client.h"

#include "gmock/gmock.h"
#include "tests/cli/status_server.h"

namespace skein {
namespace {

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

TEST(StatusClient, WhereNobodyAnswersIsUnavailable) {
  const auto status = StatusClient("127.0.0.1:1").Get(absl::Seconds(10)).status();
  EXPECT_EQ(status, absl::UnavailableError("no coordinator answers at 127.0.0.1:1"));
}

TEST(StatusClient, WhoDoesNotAnswerInTimeIsUnavailable) {
  const StatusServer coordinator({});
  const auto status = StatusClient(coordinator.address()).Get(absl::ZeroDuration()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
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
