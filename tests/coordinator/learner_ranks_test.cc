// SPDX-License-Identifier: Apache-2.0
// Several learner ranks in the coordinator's state machine: their number, their actors, their barriers.
#include <cmath>

#include "base/net/protocol.h"
#include "coordinator/coordinator_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

CoordinatorState::Options OptionsOf() {
  CoordinatorState::Options options;
  options.run_id = "run7";
  options.config.mutable_coordinator()->set_lease_seconds(5);
  options.config.mutable_coordinator()->set_heartbeat_seconds(1);
  options.config.mutable_coordinator()->set_barrier_timeout_seconds(10);
  return options;
}

class LearnerRanksTest : public testing::Test {
 protected:
  absl::StatusOr<v1::JoinResponse> TryLearner(uint32_t rank, uint32_t ranks) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(v1::ROLE_LEARNER);
    request.set_rank(rank);
    request.set_ranks(ranks);
    request.set_host("node1");
    request.set_pid(42);
    request.set_data_address("node1:700" + std::to_string(rank));
    return state_.Join(request, now_, &effects_);
  }
  v1::JoinResponse Learner(uint32_t rank, uint32_t ranks) {
    auto joined = TryLearner(rank, ranks);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(v1::JoinResponse());
  }
  v1::JoinResponse Actor(uint32_t runners) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(v1::ROLE_ACTOR);
    request.set_runners(runners);
    request.set_rank(3);  // Ignored.
    return *state_.Join(request, now_, &effects_);
  }
  v1::HeartbeatResponse Beat(const v1::JoinResponse& member, double starving_seconds = 0) {
    v1::HeartbeatRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    request.mutable_report()->set_starving_seconds(starving_seconds);
    auto answer = state_.Heartbeat(request, now_, &effects_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(v1::HeartbeatResponse());
  }
  void Leave(const v1::JoinResponse& member) {
    v1::LeaveRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    state_.Leave(request, now_, &effects_);
  }
  void Arrive(WaiterId waiter, const v1::JoinResponse& member, uint32_t participants, const std::string& payload) {
    v1::BarrierRequest request;
    request.set_member_id(member.member_id());
    request.set_member_generation(member.generation());
    request.set_name("rendezvous");
    request.set_barrier_generation(1);
    request.set_participants(participants);
    request.set_payload(payload);
    state_.Arrive(waiter, request, now_, &effects_);
  }

  MonotonicTime now_ = absl::ZeroDuration();
  Effects effects_;
  CoordinatorState state_{OptionsOf()};
};

TEST_F(LearnerRanksTest, AllAgreeOnTheirNumber) {
  Learner(1, 2);
  const absl::Status status = TryLearner(0, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 0 was started as one of 4 learners, learner-1 on node1, pid 42, as one of 2"),
                    HasSubstr("--learners")));
  Learner(0, 2);
}

TEST_F(LearnerRanksTest, NoNumberMeansOne) {
  Learner(0, 0);
  EXPECT_EQ(TryLearner(0, 1).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(TryLearner(1, 2).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LearnerRanksTest, ARankBeyondTheirNumberIsRefused) {
  absl::Status status = TryLearner(2, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "rank must be 0 to 1, as there are 2 ranks; got 2");
  status = TryLearner(1, 0).status();
  EXPECT_EQ(status.message(), "rank must be 0 to 0, as there are 1 rank; got 1");
}

TEST_F(LearnerRanksTest, AnotherNumberIsAcceptedWhenNoneIsLeft) {
  const v1::JoinResponse first = Learner(0, 2), second = Learner(1, 2);
  Leave(first);
  EXPECT_FALSE(TryLearner(0, 1).ok());
  now_ = absl::Seconds(5);  // The other one's lease ends.
  Learner(0, 1);
}

TEST_F(LearnerRanksTest, ActorsAreSharedByRunnersAndToldByHeartbeat) {
  const v1::JoinResponse first = Learner(0, 2);
  const v1::JoinResponse large = Actor(4), small = Actor(2), other = Actor(2);
  EXPECT_EQ(other.learner_address(), "node1:7000");
  const v1::JoinResponse second = Learner(1, 2);
  // 8, 0 becomes 4, 4 by moving the actor of four.
  ASSERT_THAT(effects_.moves, SizeIs(1));
  EXPECT_EQ(effects_.moves[0].actor, large.member_id());
  EXPECT_EQ(Beat(large).learner_address(), "node1:7001");
  EXPECT_EQ(Beat(small).learner_address(), "node1:7000");
  Leave(first);
  EXPECT_EQ(Beat(other).learner_address(), "node1:7001");
  Leave(second);
  EXPECT_EQ(Beat(other).learner_address(), "");
  EXPECT_EQ(state_.Status(now_).actor_moves(), 3u);
}

TEST_F(LearnerRanksTest, AStarvingRankIsServedInTurn) {
  const v1::JoinResponse first = Learner(0, 2), second = Learner(1, 2), actor = Actor(1);
  Beat(first, 0);
  Beat(second, 1.5);
  EXPECT_THAT(effects_.moves, IsEmpty());
  now_ = absl::Seconds(1);
  Beat(second, 2.5);
  ASSERT_THAT(effects_.moves, SizeIs(1));
  EXPECT_TRUE(effects_.moves[0].starvation);
  EXPECT_EQ(Beat(actor).learner_address(), "node1:7001");
  Beat(second, 0);
  now_ = absl::Seconds(2);
  Beat(first, 2.5);  // Within two seconds of the last move.
  EXPECT_EQ(Beat(actor).learner_address(), "node1:7001");
  now_ = absl::Seconds(3);
  Beat(first, 3.5);
  EXPECT_EQ(Beat(actor).learner_address(), "node1:7000");
  EXPECT_EQ(state_.Status(now_).actor_moves(), 2u);
}

TEST_F(LearnerRanksTest, AnActorThatStarvesMeansNothing) {
  Learner(0, 2);
  Learner(1, 2);
  const v1::JoinResponse actor = Actor(1);
  Beat(actor, 99);
  EXPECT_THAT(effects_.moves, IsEmpty());
}

TEST_F(LearnerRanksTest, StatusTellsRanksAndWhoFeedsWhom) {
  Learner(0, 2);
  Learner(1, 2);
  Actor(2);
  Actor(2);
  const v1::StatusResponse status = state_.Status(now_);
  ASSERT_EQ(status.members_size(), 4);
  EXPECT_EQ(status.members(0).learner_id(), "learner-0");
  EXPECT_EQ(status.members(0).rank(), 0u);
  EXPECT_EQ(status.members(1).learner_id(), "learner-1");
  EXPECT_EQ(status.members(3).member_id(), "learner-1");
  EXPECT_EQ(status.members(3).rank(), 1u);
  EXPECT_EQ(status.members(3).learner_id(), "");
}

TEST_F(LearnerRanksTest, RankZeroTellsProgressUnlessAnotherKnowsMore) {
  Learner(0, 2);
  const v1::JoinResponse second = Learner(1, 2);
  v1::HeartbeatRequest request;
  request.set_member_id(second.member_id());
  request.set_generation(second.generation());
  request.mutable_progress()->set_state(v1::RUN_STATE_FINISHED);
  EXPECT_TRUE(state_.Heartbeat(request, now_, &effects_).ok());
  EXPECT_EQ(state_.Status(now_).state(), v1::RUN_STATE_STARTING);
  // As after a restart of the coordinator under a group that rank 1 leads.
  request.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
  request.mutable_progress()->set_env_steps(7);
  EXPECT_TRUE(state_.Heartbeat(request, now_, &effects_).ok());
  EXPECT_EQ(state_.Status(now_).state(), v1::RUN_STATE_TRAINING);
  EXPECT_EQ(state_.Status(now_).progress().env_steps(), 7u);
}

TEST_F(LearnerRanksTest, AnotherRankTellsProgressOnceTheLeaderIsGoneAndHandsItBack) {
  const auto tell = [this](const v1::JoinResponse& member, uint64_t env_steps) {
    v1::HeartbeatRequest beat;
    beat.set_member_id(member.member_id());
    beat.set_generation(member.generation());
    beat.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
    beat.mutable_progress()->set_env_steps(env_steps);
    EXPECT_TRUE(state_.Heartbeat(beat, now_, &effects_).ok());
    return state_.Status(now_).progress().env_steps();
  };
  const v1::JoinResponse first = Learner(0, 2), second = Learner(1, 2);
  EXPECT_EQ(tell(first, 10), 10u);
  EXPECT_EQ(tell(second, 10), 10u);
  v1::LeaveRequest leave;
  leave.set_member_id(first.member_id());
  leave.set_generation(first.generation());
  state_.Leave(leave, now_, &effects_);
  EXPECT_EQ(tell(second, 20), 20u);
  const v1::JoinResponse again = Learner(0, 2);
  EXPECT_EQ(state_.Status(now_).state(), v1::RUN_STATE_TRAINING);  // It does not lead yet.
  EXPECT_EQ(tell(again, 15), 20u);                                 // What it knows is older.
  EXPECT_EQ(tell(again, 30), 30u);
  EXPECT_EQ(tell(second, 25), 30u);
}

TEST_F(LearnerRanksTest, RanksMeetBeforeAllHaveJoined) {
  const v1::JoinResponse first = Learner(0, 2);
  Arrive(1, first, 2, "address of the store");
  EXPECT_THAT(effects_.replies, IsEmpty());
  Arrive(2, Learner(1, 2), 2, "");
  ASSERT_THAT(effects_.replies, SizeIs(2));
  for (const BarrierReply& reply : effects_.replies) {
    EXPECT_TRUE(reply.status.ok());
    EXPECT_THAT(reply.members, ElementsAre("learner-0", "learner-1"));
    EXPECT_THAT(reply.payloads, ElementsAre("address of the store", ""));
  }
}

TEST_F(LearnerRanksTest, RanksThatStartAgainMeetAgainWhileAPredecessorIsStillAMember) {
  const v1::JoinResponse zero = Learner(0, 2), one = Learner(1, 2);
  Arrive(1, zero, 2, "");
  Arrive(2, one, 2, "");
  ASSERT_THAT(effects_.replies, SizeIs(2));
  effects_.replies.clear();
  // Rank 0 is back before rank 1's predecessor has gone: at no time is there no learner.
  Leave(zero);
  const v1::JoinResponse again = Learner(0, 2);
  Arrive(3, again, 2, "new address");
  EXPECT_THAT(effects_.replies, IsEmpty());
  Leave(one);
  Arrive(4, Learner(1, 2), 2, "");
  ASSERT_THAT(effects_.replies, SizeIs(2));
  for (const BarrierReply& reply : effects_.replies) {
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_THAT(reply.payloads, ElementsAre("new address", ""));
  }
}

TEST_F(LearnerRanksTest, ARankThatJoinedAndStayedAwayIsNamed) {
  const v1::JoinResponse first = Learner(0, 3);
  Arrive(1, first, 3, "");
  const v1::JoinResponse second = Learner(1, 3);
  for (int second_now = 1; second_now < 10; ++second_now) {
    now_ = absl::Seconds(second_now);
    Beat(first);
    Beat(second);
  }
  now_ = absl::Seconds(10);
  state_.Tick(now_, &effects_);
  ASSERT_THAT(effects_.replies, SizeIs(1));
  EXPECT_EQ(effects_.replies[0].status.message(),
            "barrier \"rendezvous\" generation 1 timed out with 1 of 3 arrived, 2 missing; absent: learner-1; 1 never "
            "joined");
}

}  // namespace
}  // namespace skein
