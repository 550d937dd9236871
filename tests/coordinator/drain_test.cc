// SPDX-License-Identifier: Apache-2.0
// An actor that is asked to leave, in the state machine.
#include <string>

#include "base/net/grpc_transport.h"
#include "coordinator/coordinator_state.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::HasSubstr;

class DrainTest : public testing::Test {
 protected:
  static CoordinatorState::Options Options() {
    CoordinatorState::Options options;
    options.run_id = "run";
    options.config.mutable_coordinator()->set_lease_seconds(5);
    options.config.mutable_coordinator()->set_heartbeat_seconds(1);
    return options;
  }
  v1::JoinResponse Join(v1::Role role, uint32_t rank = 0, uint32_t runners = 1) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(role);
    request.set_rank(rank);
    request.set_ranks(2);
    request.set_runners(runners);
    if (role == v1::ROLE_LEARNER) request.set_data_address("node:" + std::to_string(7000 + rank));
    return state_.Join(request, now_, &effects_).value();
  }
  v1::HeartbeatResponse Beat(const v1::JoinResponse& member) {
    v1::HeartbeatRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    return state_.Heartbeat(request, now_, &effects_).value();
  }
  void Leave(const v1::JoinResponse& member) {
    v1::LeaveRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    state_.Leave(request, now_, &effects_);
  }
  absl::Status Drain(const std::string& member) { return state_.Drain(member, now_, &effects_); }

  MonotonicTime now_ = absl::ZeroDuration();
  Effects effects_;
  CoordinatorState state_{Options()};
};

TEST_F(DrainTest, TheActorHearsOfItWithEachHeartbeatAndKeepsItsLearner) {
  Join(v1::ROLE_LEARNER);
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  EXPECT_FALSE(Beat(actor).drain());
  EXPECT_TRUE(Drain("actor-1").ok());
  EXPECT_TRUE(Drain("actor-1").ok());  // Again changes nothing.
  for (int i = 0; i < 2; ++i) {
    const v1::HeartbeatResponse answer = Beat(actor);
    EXPECT_TRUE(answer.drain());
    EXPECT_EQ(answer.learner_address(), "node:7000");
  }
  const v1::StatusResponse status = state_.Status(now_);
  EXPECT_TRUE(status.members(0).draining());
  EXPECT_EQ(status.members(0).learner_id(), "learner-0");
  EXPECT_FALSE(status.members(1).draining());
  Leave(actor);
  EXPECT_EQ(state_.Status(now_).members_size(), 1);
  EXPECT_EQ(state_.Status(now_).leaves(), 1u);
}

TEST_F(DrainTest, IsNotMovedAndOthersTakeItsPlace) {
  Join(v1::ROLE_LEARNER, 0);
  Join(v1::ROLE_LEARNER, 1);
  const v1::JoinResponse first = Join(v1::ROLE_ACTOR), second = Join(v1::ROLE_ACTOR), third = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(Beat(first).learner_address(), "node:7000");
  EXPECT_EQ(Beat(second).learner_address(), "node:7001");
  EXPECT_EQ(Beat(third).learner_address(), "node:7000");
  // Without the second one rank 1 has nobody: one of rank 0's two is moved there.
  effects_ = {};
  EXPECT_TRUE(Drain("actor-2").ok());
  ASSERT_EQ(effects_.moves.size(), 1u);
  EXPECT_NE(effects_.moves[0].actor, "actor-2");
  EXPECT_EQ(effects_.moves[0].to, 1u);
  EXPECT_EQ(Beat(second).learner_address(), "node:7001");
  Leave(second);
  EXPECT_EQ(effects_.moves.size(), 1u);
}

TEST_F(DrainTest, WithoutItsLearnerItHasNone) {
  const v1::JoinResponse learner = Join(v1::ROLE_LEARNER, 0);
  Join(v1::ROLE_LEARNER, 1);
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  EXPECT_TRUE(Drain("actor-1").ok());
  Leave(learner);
  EXPECT_EQ(Beat(actor).learner_address(), "");
}

TEST_F(DrainTest, AnUnknownMemberIsNotFoundAndTheActorsAreNamed) {
  EXPECT_EQ(Drain("actor-1"), absl::NotFoundError("there is no member \"actor-1\"; the run has no actors now"));
  Join(v1::ROLE_LEARNER);
  Join(v1::ROLE_ACTOR);
  Join(v1::ROLE_ACTOR);
  EXPECT_EQ(Drain("actor-7"),
            absl::NotFoundError("there is no member \"actor-7\"; the run's actors are actor-1, actor-2"));
  for (int i = 0; i < 20; ++i) Join(v1::ROLE_ACTOR);
  EXPECT_THAT(std::string(Drain("x").message()), HasSubstr(" and 2 more"));
  now_ = absl::Seconds(5);  // All have fallen silent.
  EXPECT_TRUE(absl::IsNotFound(Drain("actor-1")));
}

TEST_F(DrainTest, ALearnerIsRefused) {
  Join(v1::ROLE_LEARNER);
  const absl::Status status = Drain("learner-0");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("only actors can be drained"));
}

}  // namespace
}  // namespace skein
