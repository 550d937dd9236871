// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_roll.h"

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

class Coordinator final : public v1::Coordinator::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::StatusResponse* response) override {
    for (const auto& [role, rank] : {std::pair{"learner", 3}, {"actor", 0}, {"learner", 1}}) {
      v1::MemberStatus& member = *response->add_members();
      member.set_role(role);
      member.set_rank(static_cast<uint32_t>(rank));
    }
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
    EXPECT_THAT(*ranks, ElementsAre(1, 3));
  }
  (*server)->Shutdown();
}

TEST(RankRoll, NobodyAnswers) { EXPECT_FALSE(RankRoll("127.0.0.1:1").Call(absl::Milliseconds(100)).ok()); }

}  // namespace
}  // namespace skein
