// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_roll.h"

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::Pair;

class Coordinator final : public v1::Coordinator::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::StatusResponse* response) override {
    for (const auto& [role, rank] : {std::pair{"learner", 3}, {"actor", 0}, {"learner", 1}}) {
      v1::MemberStatus& member = *response->add_members();
      member.set_role(role);
      member.set_rank(static_cast<uint32_t>(rank));
      member.set_host("node");
      member.set_pid(100 + rank);
    }
    response->set_expirations(2);
    response->set_uptime_seconds(7);
    return grpc::Status::OK;
  }
};

TEST(RankRoll, NamesTheLearnersThatAreLiveWhicheverCoordinatorAnswers) {
  Coordinator coordinator;
  int port = 0;
  auto server = StartGrpcServer("127.0.0.1:0", &coordinator, &port);
  ASSERT_TRUE(server.ok()) << server.status();
  RankRoll roll(absl::StrCat("127.0.0.1:1,127.0.0.1:", port));
  for (int i = 0; i < 2; ++i) {
    const auto ranks = roll.Call(absl::Seconds(20));
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    EXPECT_THAT(ranks->processes, ElementsAre(Pair(1, "node 101"), Pair(3, "node 103")));
    EXPECT_EQ(ranks->expirations, 2u);
    EXPECT_EQ(ranks->uptime, absl::Seconds(7));
  }
  (*server)->Shutdown();
}

TEST(RankRoll, NobodyAnswers) { EXPECT_FALSE(RankRoll("127.0.0.1:1").Call(absl::Milliseconds(100)).ok()); }

TEST(FindLeaver, IsARankThatLeftOrWasReplacedAndNotOneThatFellSilent) {
  const RankRoll::Answer then = {{{0, "a 1"}, {1, "b 2"}}, 3, absl::Seconds(10)};
  RankRoll::Answer now = then;
  now.uptime = absl::Seconds(11);
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), std::nullopt);
  now.processes[2] = "c 3";  // A new process.
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), std::nullopt);
  now.processes.erase(1);
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), 1u);
  EXPECT_EQ(FindLeaver(then, now, {0}), std::nullopt);  // Not of this group.
  now.expirations = 4;
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), std::nullopt);
  now.processes[1] = "b 9";
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), 1u);
  now.uptime = absl::Seconds(1);  // The coordinator was restarted.
  EXPECT_EQ(FindLeaver(then, now, {0, 1}), std::nullopt);
}

}  // namespace
}  // namespace skein
