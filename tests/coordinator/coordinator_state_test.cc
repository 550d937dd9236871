// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator_state.h"

#include <cmath>

#include "base/net/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kEpoch = 1'700'000'000'000;

CoordinatorState::Options OptionsOf(uint64_t epoch = kEpoch) {
  CoordinatorState::Options options;
  options.run_id = "run7";
  options.run_directory = "runs/x";
  options.start_epoch = epoch;
  options.config.set_name("x");
  options.config.set_total_steps(1000);
  options.config.mutable_coordinator()->set_lease_seconds(5);
  options.config.mutable_coordinator()->set_heartbeat_seconds(1);
  options.config.mutable_coordinator()->set_barrier_timeout_seconds(10);
  return options;
}

v1::JoinRequest JoinOf(v1::Role role, uint32_t rank = 0) {
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(role);
  request.set_rank(rank);
  request.set_ranks(3);
  request.set_host("node1");
  request.set_pid(42);
  if (role == v1::ROLE_LEARNER) request.set_data_address("node1:700" + std::to_string(rank));
  return request;
}

// A script on a simulated clock: set now_, then act.
class CoordinatorStateTest : public testing::Test {
 protected:
  v1::JoinResponse Join(v1::Role role, uint32_t rank = 0) {
    absl::StatusOr<v1::JoinResponse> joined = state_.Join(JoinOf(role, rank), now_, &effects_);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(v1::JoinResponse());
  }
  absl::StatusOr<v1::HeartbeatResponse> Beat(const v1::JoinResponse& member,
                                             v1::RunState state = v1::RUN_STATE_UNSPECIFIED,
                                             const std::string& error = "") {
    v1::HeartbeatRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    request.mutable_report()->set_last_error(error);
    if (state != v1::RUN_STATE_UNSPECIFIED) request.mutable_progress()->set_state(state);
    return state_.Heartbeat(request, now_, &effects_);
  }
  void Leave(const v1::JoinResponse& member, v1::RunState state = v1::RUN_STATE_UNSPECIFIED) {
    v1::LeaveRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    if (state != v1::RUN_STATE_UNSPECIFIED) request.mutable_progress()->set_state(state);
    state_.Leave(request, now_, &effects_);
  }
  void Arrive(WaiterId waiter, const v1::JoinResponse& member, uint64_t generation, double timeout = 0) {
    v1::BarrierRequest request;
    request.set_member_id(member.member_id());
    request.set_member_generation(member.generation());
    request.set_name("iteration");
    request.set_barrier_generation(generation);
    request.set_timeout_seconds(timeout);
    state_.Arrive(waiter, request, now_, &effects_);
  }
  std::map<WaiterId, absl::StatusCode> TakeReplies() {
    std::map<WaiterId, absl::StatusCode> codes;
    for (const BarrierReply& reply : effects_.replies) codes[reply.waiter] = reply.status.code();
    effects_.replies.clear();
    return codes;
  }
  v1::StatusResponse Status() { return state_.Status(now_); }
  std::vector<std::string> Members() {
    std::vector<std::string> ids;
    const v1::StatusResponse status = Status();
    for (const v1::MemberStatus& member : status.members()) ids.push_back(member.member_id());
    return ids;
  }

  MonotonicTime now_ = absl::ZeroDuration();
  Effects effects_;
  CoordinatorState state_{OptionsOf()};
};

using Codes = std::map<WaiterId, absl::StatusCode>;
constexpr absl::StatusCode kOk = absl::StatusCode::kOk;

TEST_F(CoordinatorStateTest, JoinAnswersWithEverythingAMemberNeeds) {
  Join(v1::ROLE_LEARNER);
  v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(actor.member_id(), "actor-1");
  EXPECT_EQ(actor.generation(), (kEpoch << 10) + 2);
  EXPECT_EQ(actor.run_id(), "run7");
  EXPECT_EQ(actor.config().total_steps(), 1000u);
  EXPECT_EQ(actor.lease_seconds(), 5);
  EXPECT_EQ(actor.heartbeat_seconds(), 1);
  EXPECT_EQ(actor.learner_address(), "node1:7000");
}

TEST_F(CoordinatorStateTest, JoinBeatExpireRejoin) {
  v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  now_ = absl::Seconds(4);
  EXPECT_TRUE(Beat(actor).ok());
  EXPECT_EQ(state_.NextDeadline(), absl::Seconds(5));  // As of the join; early is allowed.
  now_ = absl::Seconds(5);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(state_.NextDeadline(), absl::Seconds(9));
  EXPECT_THAT(Members(), ElementsAre("actor-1"));
  now_ = absl::Seconds(9);  // Nobody called Tick(): the heartbeat is late all the same.
  EXPECT_EQ(Beat(actor).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Status().expirations(), 1u);
  v1::JoinResponse again = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(again.member_id(), "actor-2");
  EXPECT_GT(again.generation(), actor.generation());
  EXPECT_EQ(Status().joins(), 2u);
  ASSERT_EQ(effects_.changes.size(), 3u);
  EXPECT_EQ(effects_.changes[0].kind, MembershipChange::kJoined);
  EXPECT_EQ(effects_.changes[1].kind, MembershipChange::kExpired);
  EXPECT_EQ(effects_.changes[2].kind, MembershipChange::kJoined);
}

TEST_F(CoordinatorStateTest, ALearnerThatHangsBlocksTheRunAndIsNotStarting) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  EXPECT_TRUE(Beat(learner, v1::RUN_STATE_STARTING).ok());
  EXPECT_EQ(Status().state(), v1::RUN_STATE_STARTING);
  for (int beat = 0; beat < 120; ++beat) {
    now_ += absl::Seconds(1);
    EXPECT_TRUE(Beat(learner, v1::RUN_STATE_STARTING).ok());
  }
  EXPECT_EQ(Status().state(), v1::RUN_STATE_STARTING);
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Beat(learner, v1::RUN_STATE_STARTING).ok());
  EXPECT_EQ(Status().state(), v1::RUN_STATE_BLOCKED);
  EXPECT_EQ(Status().progress().state(), v1::RUN_STATE_BLOCKED);
  EXPECT_THAT(Status().last_error(),
              HasSubstr("learner-0 on node1 (pid 42) sends heartbeats and has done nothing for 2m1s"));
  EXPECT_TRUE(Beat(learner, v1::RUN_STATE_TRAINING).ok());  // It was only slow.
  EXPECT_EQ(Status().state(), v1::RUN_STATE_TRAINING);
  EXPECT_EQ(Status().last_error(), "");
}

TEST_F(CoordinatorStateTest, RefusesAnotherProtocolAnotherRunAndNonsense) {
  v1::JoinRequest request = JoinOf(v1::ROLE_ACTOR);
  request.set_protocol_major(9);
  request.set_protocol_minor(3);
  absl::Status status = state_.Join(request, now_, &effects_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("protocol 9.3 does not match the coordinator's 2.0"));

  request = JoinOf(v1::ROLE_ACTOR);
  request.set_run_id("other");
  status = state_.Join(request, now_, &effects_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("run7"), HasSubstr("other")));
  request.set_run_id("run7");
  EXPECT_TRUE(state_.Join(request, now_, &effects_).ok());

  status = state_.Join(JoinOf(v1::ROLE_UNSPECIFIED), now_, &effects_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  request = JoinOf(v1::ROLE_LEARNER);
  request.clear_data_address();
  EXPECT_EQ(state_.Join(request, now_, &effects_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorStateTest, ALearnerRankIsFreeOnceItsLeaseHasEnded) {
  v1::JoinResponse first = Join(v1::ROLE_LEARNER);
  now_ = absl::Seconds(4.9);
  EXPECT_EQ(state_.Join(JoinOf(v1::ROLE_LEARNER), now_, &effects_).status().code(), absl::StatusCode::kAlreadyExists);
  now_ = absl::Seconds(5);
  v1::JoinResponse second = Join(v1::ROLE_LEARNER);
  EXPECT_EQ(second.member_id(), "learner-0");
  EXPECT_EQ(Beat(first).status().code(), absl::StatusCode::kFailedPrecondition);
  Leave(first);  // The stale process departs: its successor stays.
  EXPECT_TRUE(Beat(second).ok());
  EXPECT_EQ(Status().leaves(), 0u);
}

TEST_F(CoordinatorStateTest, GenerationsRiseAcrossARestart) {
  uint64_t highest = 0;
  for (int i = 0; i < 1000; ++i) highest = Join(v1::ROLE_ACTOR).generation();
  CoordinatorState restarted(OptionsOf(kEpoch + 1));  // One millisecond later.
  absl::StatusOr<v1::JoinResponse> joined = restarted.Join(JoinOf(v1::ROLE_ACTOR), now_, &effects_);
  EXPECT_GT(joined->generation(), highest);
  v1::HeartbeatRequest stale;
  stale.set_member_id("actor-1");
  stale.set_generation((kEpoch << 10) + 1);
  EXPECT_EQ(restarted.Heartbeat(stale, now_, &effects_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorStateTest, ActorsLearnTheirLearnerByHeartbeat) {
  v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(actor.learner_address(), "");
  v1::JoinResponse learner0 = Join(v1::ROLE_LEARNER, 0);
  EXPECT_EQ(Beat(actor)->learner_address(), "node1:7000");
  Join(v1::ROLE_LEARNER, 1);
  EXPECT_EQ(Beat(actor)->learner_address(), "node1:7000");  // A lonely actor stays.
  EXPECT_EQ(Join(v1::ROLE_ACTOR).learner_address(), "node1:7001");
  Leave(learner0);
  EXPECT_EQ(Beat(actor)->learner_address(), "node1:7001");
}

class FaultRow12 : public CoordinatorStateTest {};
class FaultRow13 : public CoordinatorStateTest {};

TEST_F(FaultRow12, OneOfThreeNeverArrives) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1), c = Join(v1::ROLE_LEARNER, 2);
  Join(v1::ROLE_ACTOR);  // Another role: nobody waits for it.
  Arrive(1, a, 1, 3);
  Arrive(2, b, 1, 3);
  EXPECT_EQ(state_.NextDeadline(), absl::Seconds(3));
  now_ = absl::Seconds(3);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(effects_.barriers_timed_out, 1);
  ASSERT_EQ(effects_.replies.size(), 2u);
  EXPECT_THAT(std::string(effects_.replies[1].status.message()), HasSubstr("generation 1"));
  EXPECT_THAT(std::string(effects_.replies[1].status.message()), HasSubstr("absent: learner-2"));
  EXPECT_EQ(TakeReplies(), (Codes{{1, absl::StatusCode::kDeadlineExceeded}, {2, absl::StatusCode::kDeadlineExceeded}}));
  Arrive(3, a, 2);
  Arrive(4, b, 2);
  Arrive(5, c, 2);
  EXPECT_EQ(TakeReplies(), (Codes{{3, kOk}, {4, kOk}, {5, kOk}}));
}

TEST_F(FaultRow13, AWaiterDiesInsideABarrier) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1), c = Join(v1::ROLE_LEARNER, 2);
  Arrive(1, a, 1);
  Arrive(2, b, 1);
  state_.CancelWaiter(1);  // a's connection breaks, then its lease ends.
  now_ = absl::Seconds(4);
  EXPECT_TRUE(Beat(b).ok());
  EXPECT_TRUE(Beat(c).ok());
  Arrive(3, c, 1);
  EXPECT_EQ(TakeReplies(), Codes());
  now_ = absl::Seconds(5);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(effects_.barriers_timed_out, 0);
  EXPECT_THAT(effects_.replies[0].members, ElementsAre("learner-1", "learner-2"));
  EXPECT_EQ(TakeReplies(), (Codes{{2, kOk}, {3, kOk}}));
}

TEST_F(CoordinatorStateTest, AnActorWhoseDataHaveNotPassedForALeaseIsDegraded) {
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  const auto report = [&](double undelivered) {
    v1::HeartbeatRequest request;
    request.set_member_id(actor.member_id());
    request.set_generation(actor.generation());
    request.mutable_report()->set_undelivered_seconds(undelivered);
    EXPECT_TRUE(state_.Heartbeat(request, now_, &effects_).ok());
    return Status().members(0).degraded();
  };
  EXPECT_FALSE(report(5));  // The lease.
  EXPECT_TRUE(report(5.1));
  EXPECT_FALSE(report(0));
}

TEST_F(CoordinatorStateTest, BarriersTakeTheDefaultTimeoutAndRefuseStrangers) {
  v1::JoinResponse a = Join(v1::ROLE_ACTOR);
  Join(v1::ROLE_ACTOR);
  v1::JoinResponse stranger = a;
  stranger.set_generation(1);
  Arrive(1, stranger, 1);
  EXPECT_EQ(TakeReplies(), (Codes{{1, absl::StatusCode::kFailedPrecondition}}));
  stranger.set_member_id("actor-99");
  Arrive(2, stranger, 1);
  EXPECT_EQ(TakeReplies(), (Codes{{2, absl::StatusCode::kFailedPrecondition}}));
  Arrive(3, a, 1, std::nan(""));
  EXPECT_EQ(TakeReplies(), (Codes{{3, absl::StatusCode::kInvalidArgument}}));
  // Heartbeats keep both alive until the default of 10 s is over.
  Arrive(4, a, 1);
  for (int second = 1; second < 10; ++second) {
    now_ = absl::Seconds(second);
    v1::JoinResponse other = a;
    other.set_member_id("actor-2");
    other.set_generation(a.generation() + 1);
    ASSERT_TRUE(Beat(a).ok());
    ASSERT_TRUE(Beat(other).ok());
  }
  EXPECT_EQ(TakeReplies(), Codes());
  now_ = absl::Seconds(10);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(TakeReplies(), (Codes{{4, absl::StatusCode::kDeadlineExceeded}}));
}

TEST_F(CoordinatorStateTest, RestartedLearnersCountBarriersFromOne) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  Arrive(1, learner, 5);
  Leave(learner);
  learner = Join(v1::ROLE_LEARNER);
  Arrive(2, learner, 1);
  EXPECT_EQ(TakeReplies(), (Codes{{1, kOk}, {2, kOk}}));
}

TEST_F(CoordinatorStateTest, RunStateFollowsLearnerRankZero) {
  v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(Beat(actor)->run_state(), v1::RUN_STATE_STARTING);
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER, 0), other = Join(v1::ROLE_LEARNER, 1);
  Beat(learner, v1::RUN_STATE_TRAINING).IgnoreError();
  Beat(other, v1::RUN_STATE_FAILED).IgnoreError();  // Not the leader: ignored.
  Beat(actor, v1::RUN_STATE_FAILED).IgnoreError();
  EXPECT_EQ(Beat(actor)->run_state(), v1::RUN_STATE_TRAINING);
  EXPECT_EQ(Status().progress().state(), v1::RUN_STATE_TRAINING);
  Leave(learner, v1::RUN_STATE_FINISHED);
  EXPECT_EQ(Beat(actor)->run_state(), v1::RUN_STATE_FINISHED);
  Join(v1::ROLE_LEARNER, 0);  // Resumed: it starts again.
  EXPECT_EQ(Beat(actor)->run_state(), v1::RUN_STATE_STARTING);
}

TEST_F(CoordinatorStateTest, AFinalStateOutlivesTheLearnersLease) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  Beat(learner, v1::RUN_STATE_STOPPED).IgnoreError();
  now_ = absl::Seconds(6);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(Status().state(), v1::RUN_STATE_STOPPED);
  EXPECT_EQ(Status().last_error(), "");
}

TEST_F(CoordinatorStateTest, WithoutItsLearnerTheRunIsStartingAgainOrBlockedIfItFellSilent) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  Beat(learner, v1::RUN_STATE_TRAINING).IgnoreError();
  Leave(learner);
  EXPECT_EQ(Status().state(), v1::RUN_STATE_STARTING);
  EXPECT_EQ(Status().last_error(), "");

  learner = Join(v1::ROLE_LEARNER);
  Beat(learner, v1::RUN_STATE_TRAINING).IgnoreError();
  now_ = absl::Seconds(5);
  state_.Tick(now_, &effects_);
  EXPECT_EQ(Status().state(), v1::RUN_STATE_BLOCKED);
  EXPECT_EQ(Status().last_error(), "learner-0 on node1 (pid 42) was silent for 5s: its lease has ended");
  EXPECT_EQ(Status().progress().eta_seconds(), -1);
  Join(v1::ROLE_LEARNER);
  EXPECT_EQ(Status().state(), v1::RUN_STATE_STARTING);
  EXPECT_EQ(Status().last_error(), "");
}

TEST_F(CoordinatorStateTest, LastErrorIsTheFirstOneReported) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER), actor = Join(v1::ROLE_ACTOR);
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "cannot step").IgnoreError();
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "cannot send").IgnoreError();
  EXPECT_EQ(Status().last_error(), "actor-1: cannot step");
  Leave(learner);
  Join(v1::ROLE_LEARNER);
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "cannot send").IgnoreError();  // The old one, repeated.
  EXPECT_EQ(Status().last_error(), "");
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "worse").IgnoreError();
  EXPECT_EQ(Status().last_error(), "actor-1: worse");
}

TEST_F(CoordinatorStateTest, AnActorsErrorDoesNotHideALearners) {
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR), learner = Join(v1::ROLE_LEARNER),
                         other = Join(v1::ROLE_LEARNER, 1);
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "learner-0: not true").IgnoreError();
  EXPECT_EQ(Status().last_error(), "actor-1: learner-0: not true");
  Beat(learner, v1::RUN_STATE_UNSPECIFIED, "no data").IgnoreError();
  EXPECT_EQ(Status().last_error(), "learner-0: no data");
  Beat(other, v1::RUN_STATE_UNSPECIFIED, "nor here").IgnoreError();  // Of learners the first.
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "another").IgnoreError();
  EXPECT_EQ(Status().last_error(), "learner-0: no data");
}

TEST_F(CoordinatorStateTest, AnActorsErrorDoesNotHideThatALearnerFellSilent) {
  const v1::JoinResponse learner = Join(v1::ROLE_LEARNER), actor = Join(v1::ROLE_ACTOR);
  Beat(learner, v1::RUN_STATE_TRAINING).IgnoreError();
  Beat(actor, v1::RUN_STATE_UNSPECIFIED, "cannot step").IgnoreError();
  now_ = absl::Seconds(5);
  state_.Tick(now_, &effects_);
  EXPECT_THAT(Status().last_error(), HasSubstr("learner-0 on node1 (pid 42) was silent for 5s"));
}

TEST_F(CoordinatorStateTest, ThereAreSoManyActorsAndALearnerComesInAllTheSame) {
  CoordinatorState::Options options = OptionsOf();
  EXPECT_EQ(options.most_actors, 10'000u);
  options.most_actors = 2;
  CoordinatorState state(options);
  ASSERT_TRUE(state.Join(JoinOf(v1::ROLE_ACTOR), now_, &effects_).ok());
  now_ = absl::Seconds(1);
  ASSERT_TRUE(state.Join(JoinOf(v1::ROLE_ACTOR), now_, &effects_).ok());
  const absl::Status status = state.Join(JoinOf(v1::ROLE_ACTOR), now_, &effects_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(),
            "the run has 2 actors, and can have no more; stop some (skein drain), or wait 5s if they have been killed, "
            "until their leases have ended");
  EXPECT_TRUE(state.Join(JoinOf(v1::ROLE_LEARNER), now_, &effects_).ok());
  now_ = absl::Seconds(5);  // The first one's lease has ended.
  EXPECT_TRUE(state.Join(JoinOf(v1::ROLE_ACTOR), now_, &effects_).ok());
}

TEST_F(CoordinatorStateTest, TheRunsOwnErrorIsReportedToo) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  v1::LeaveRequest request;
  request.set_member_id(learner.member_id());
  request.set_generation(learner.generation());
  request.mutable_progress()->set_state(v1::RUN_STATE_FAILED);
  request.mutable_progress()->set_last_error("loss is not finite");
  state_.Leave(request, now_, &effects_);
  EXPECT_EQ(Status().state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(Status().last_error(), "learner-0: loss is not finite");
}

TEST_F(CoordinatorStateTest, StatusListsLiveMembersById) {
  Join(v1::ROLE_LEARNER);
  v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  now_ = absl::Seconds(2);
  v1::StatusResponse status = Status();
  ASSERT_EQ(status.members_size(), 2);
  EXPECT_EQ(status.members(0).member_id(), "actor-1");
  EXPECT_EQ(status.members(0).role(), "actor");
  EXPECT_EQ(status.members(0).generation(), actor.generation());
  EXPECT_EQ(status.members(0).seconds_since_heartbeat(), 2);
  EXPECT_EQ(status.members(1).member_id(), "learner-0");
  EXPECT_EQ(status.run_name(), "x");
  EXPECT_EQ(status.run_directory(), "runs/x");
  EXPECT_EQ(status.uptime_seconds(), 2);
  EXPECT_EQ(status.progress().target_env_steps(), 1000u);
}

}  // namespace
}  // namespace skein
