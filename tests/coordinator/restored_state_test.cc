// SPDX-License-Identifier: Apache-2.0
// A coordinator's state after a restart: what one leaves, another goes on with.
#include <map>
#include <memory>
#include <optional>

#include "base/net/protocol.h"
#include "coordinator/coordinator_state.h"
#include "coordinator/state_records.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

constexpr uint64_t kEpoch = 1'700'000'000'000;

class RestoredStateTest : public testing::Test {
 protected:
  RestoredStateTest() { Start(); }

  // The coordinator is killed, and another starts with what has been kept.
  void Start() {
    CoordinatorState::Options options;
    options.run_id = "run7";
    options.config.set_total_steps(1000);
    options.config.mutable_coordinator()->set_lease_seconds(5);
    options.config.mutable_coordinator()->set_heartbeat_seconds(1);
    options.config.mutable_coordinator()->set_barrier_timeout_seconds(10);
    auto saved = ParseRecords(records_);
    ASSERT_TRUE(saved.ok()) << saved.status();
    options.saved = *saved;
    options.start_epoch = NextEpoch(kEpoch, *saved ? (*saved)->run.epoch() : 0);
    now_ = absl::ZeroDuration();
    state_ = std::make_unique<CoordinatorState>(options);
    effects_.records.push_back(state_->RunChange());
    Keep();
  }
  // Forgets what has been kept, too.
  void LoseState() { records_.clear(); }

  void Keep() {
    for (const StateChange& change : effects_.records) {
      if (change.value) {
        records_[change.key] = *change.value;
      } else {
        records_.erase(change.key);
      }
    }
    effects_.records.clear();
  }
  v1::JoinResponse Join(v1::Role role, uint32_t rank = 0) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(role);
    request.set_rank(rank);
    request.set_ranks(2);
    request.set_host("node1");
    request.set_runners(3);
    request.set_metrics_address("node1:9100");
    if (role == v1::ROLE_LEARNER) request.set_data_address("node1:700" + std::to_string(rank));
    absl::StatusOr<v1::JoinResponse> joined = state_->Join(request, now_, &effects_);
    EXPECT_TRUE(joined.ok()) << joined.status();
    Keep();
    return joined.value_or(v1::JoinResponse());
  }
  absl::StatusOr<v1::HeartbeatResponse> Beat(const v1::JoinResponse& member, uint64_t env_steps = 0) {
    v1::HeartbeatRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    request.mutable_report()->set_env_steps(env_steps);
    if (env_steps > 0) {
      request.mutable_progress()->set_env_steps(env_steps);
      request.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
    }
    const auto answer = state_->Heartbeat(request, now_, &effects_);
    Keep();
    return answer;
  }
  // The code with which the call has ended by now; nullopt: it waits.
  std::optional<absl::StatusCode> Arrive(const v1::JoinResponse& member, uint64_t generation) {
    v1::BarrierRequest request;
    request.set_member_id(member.member_id());
    request.set_member_generation(member.generation());
    request.set_name("train");
    request.set_barrier_generation(generation);
    request.set_participants(2);
    request.set_payload("of " + member.member_id());
    state_->Arrive(++last_waiter_, request, now_, &effects_);
    Keep();
    for (const BarrierReply& reply : effects_.replies) {
      if (reply.waiter == last_waiter_) return reply.status.code();
    }
    return std::nullopt;
  }
  v1::StatusResponse Status() const { return state_->Status(now_); }

  std::map<std::string, std::string> records_;
  MonotonicTime now_;
  Effects effects_;
  WaiterId last_waiter_ = 0;
  std::unique_ptr<CoordinatorState> state_;
};

TEST_F(RestoredStateTest, MembersKeepTheirLeasesWithoutJoiningAgain) {
  const auto learner = Join(v1::ROLE_LEARNER), actor = Join(v1::ROLE_ACTOR);
  Start();
  now_ = absl::Seconds(4);  // A whole lease from the start.
  EXPECT_TRUE(Beat(learner).ok());
  EXPECT_EQ(Beat(actor)->learner_address(), "node1:7000");
  EXPECT_EQ(Status().joins(), 0u);
}

TEST_F(RestoredStateTest, MembersKeepTheirCertificates) {
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(v1::ROLE_ACTOR);
  const auto actor = state_->Join(request, now_, &effects_, "the actor's");
  ASSERT_TRUE(actor.ok()) << actor.status();
  Keep();
  Start();
  EXPECT_TRUE(state_->CheckCaller(actor->member_id(), actor->generation(), "the actor's").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(state_->CheckCaller(actor->member_id(), actor->generation(), "another's")));
}

TEST_F(RestoredStateTest, AMemberThatDiedMeanwhileExpires) {
  Join(v1::ROLE_LEARNER);
  Start();
  EXPECT_EQ(state_->NextDeadline(), absl::Seconds(5));
  now_ = absl::Seconds(5);
  state_->Tick(now_, &effects_);
  Keep();
  EXPECT_EQ(Status().members_size(), 0);
  Start();
  EXPECT_EQ(Status().members_size(), 0);
}

TEST_F(RestoredStateTest, WhoHasLeftStaysAway) {
  const auto actor = Join(v1::ROLE_ACTOR);
  v1::LeaveRequest request;
  request.set_member_id(actor.member_id());
  request.set_generation(actor.generation());
  state_->Leave(request, now_, &effects_);
  Keep();
  Start();
  EXPECT_EQ(Status().members_size(), 0);
  EXPECT_EQ(Beat(actor).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RestoredStateTest, StatusShowsTheSameAtOnce) {
  const auto learner = Join(v1::ROLE_LEARNER);
  Join(v1::ROLE_ACTOR);
  EXPECT_TRUE(Beat(learner, 640).ok());
  v1::StatusResponse before = Status();
  Start();
  v1::StatusResponse after = Status();
  EXPECT_EQ(after.progress().env_steps(), 640u);
  EXPECT_EQ(after.state(), v1::RUN_STATE_TRAINING);
  ASSERT_EQ(after.members_size(), 2);
  for (int i = 0; i < 2; ++i) {
    // All but what each heartbeat says.
    before.mutable_members(i)->clear_report();
    after.mutable_members(i)->clear_report();
    EXPECT_EQ(after.members(i).DebugString(), before.members(i).DebugString());
  }
}

// Rank 0 is there and does not lead: its successor's reports count on.
TEST_F(RestoredStateTest, TheRankThatLedLeadsOn) {
  const auto a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1);
  EXPECT_TRUE(Beat(a, 640).ok());
  EXPECT_TRUE(Beat(b, 1280).ok());  // It knows of more steps.
  Start();
  EXPECT_TRUE(Beat(b, 1920).ok());
  EXPECT_EQ(Status().progress().env_steps(), 1920u);
}

// 1,024 generations a millisecond; an epoch begins where no generation of the one before can be.
TEST_F(RestoredStateTest, GenerationsAndActorIdsGoOnEvenIfTheClockDoesNot) {
  const auto first = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(first.generation(), (kEpoch << 10) + 1);
  Start();
  const auto second = Join(v1::ROLE_ACTOR);
  EXPECT_EQ(second.member_id(), "actor-2");
  EXPECT_EQ(second.generation(), ((kEpoch + 1024) << 10) + 1);
  EXPECT_EQ(NextEpoch(kEpoch + 3'600'000, kEpoch), kEpoch + 3'600'000);
  EXPECT_EQ(NextEpoch(kEpoch - 3'600'000, kEpoch), kEpoch + 1024);
}

TEST_F(RestoredStateTest, ActorsFeedTheSameLearnersAsBefore) {
  const auto a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1);
  std::vector<v1::JoinResponse> actors;
  for (int i = 0; i < 4; ++i) actors.push_back(Join(v1::ROLE_ACTOR));
  std::vector<std::string> before, after;
  for (const auto& actor : actors) before.push_back(Beat(actor)->learner_address());
  Start();
  for (const auto& actor : actors) after.push_back(Beat(actor)->learner_address());
  EXPECT_EQ(after, before);
  EXPECT_EQ(Status().actor_moves(), 0u);
}

TEST_F(RestoredStateTest, ADrainingActorIsStillAskedToLeave) {
  Join(v1::ROLE_LEARNER);
  const auto actor = Join(v1::ROLE_ACTOR);
  EXPECT_TRUE(state_->Drain(actor.member_id(), now_, &effects_).ok());
  Keep();
  Start();
  const auto answer = Beat(actor);
  EXPECT_TRUE(answer->drain());
  EXPECT_EQ(answer->learner_address(), "node1:7000");
}

// The answer to b was lost with the coordinator; a has gone on. b must hear the same, not wait alone.
TEST_F(RestoredStateTest, ABarrierThatHasOpenedStaysOpen) {
  const auto a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1);
  EXPECT_EQ(Arrive(a, 7), std::nullopt);
  EXPECT_EQ(Arrive(b, 7), absl::StatusCode::kOk);
  Start();
  effects_.replies.clear();
  EXPECT_EQ(Arrive(b, 7), absl::StatusCode::kOk);
  EXPECT_THAT(effects_.replies.back().payloads, ElementsAre("of learner-0", "of learner-1"));
  EXPECT_EQ(Arrive(a, 6), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Arrive(a, 8), std::nullopt);
  EXPECT_EQ(Arrive(b, 8), absl::StatusCode::kOk);
}

// A rank that starts again counts from 1: what was forgotten before a restart is forgotten after it.
TEST_F(RestoredStateTest, ABarrierThatWasForgottenStaysForgotten) {
  const auto a = Join(v1::ROLE_LEARNER, 0);
  auto b = Join(v1::ROLE_LEARNER, 1);
  Arrive(a, 1);
  EXPECT_EQ(Arrive(b, 1), absl::StatusCode::kOk);
  v1::LeaveRequest leave;
  leave.set_member_id(b.member_id());
  leave.set_generation(b.generation());
  state_->Leave(leave, now_, &effects_);
  Keep();
  b = Join(v1::ROLE_LEARNER, 1);
  Start();
  EXPECT_EQ(Arrive(a, 1), std::nullopt);
  EXPECT_EQ(Arrive(b, 1), absl::StatusCode::kOk);
}

TEST_F(RestoredStateTest, WithoutItsStateMembersJoinAgainAndItSaysSoOnce) {
  const auto actor = Join(v1::ROLE_ACTOR);
  LoseState();
  Start();
  CoordinatorState::Options options;
  // Its clock has gone on.
  options.run_id = "run7";
  options.start_epoch = kEpoch + 10'000;
  options.config.mutable_coordinator()->set_lease_seconds(5);
  state_ = std::make_unique<CoordinatorState>(options);
  EXPECT_FALSE(Beat(actor).ok());
  EXPECT_TRUE(std::exchange(effects_.state_was_lost, false));
  EXPECT_FALSE(Beat(actor).ok());
  EXPECT_FALSE(effects_.state_was_lost);
  EXPECT_EQ(Join(v1::ROLE_ACTOR).member_id(), "actor-1");
}

TEST_F(RestoredStateTest, WithItsStateAStaleMemberIsNoSignOfALoss) {
  const auto actor = Join(v1::ROLE_ACTOR);
  Start();
  now_ = absl::Seconds(5);
  EXPECT_FALSE(Beat(actor).ok());
  EXPECT_FALSE(effects_.state_was_lost);
}

TEST(StateRecords, WhatCannotBeReadIsDataLoss) {
  EXPECT_FALSE(ParseRecords({})->has_value());
  EXPECT_TRUE(absl::IsDataLoss(ParseRecords({{"member/actor-1", ""}}).status()));  // Without a run.
  EXPECT_TRUE(absl::IsDataLoss(ParseRecords({{"run", "\x0a\xff"}}).status()));
  store::RunRecord run;
  run.set_run_id("run7");
  EXPECT_TRUE(ParseRecords({{"run", run.SerializeAsString()}, {"of a newer release", "x"}}).ok());
}

TEST(StateRecords, TheChecksumTellsConfigurationsApart) {
  v1::RunConfig config;
  config.set_seed(1);
  const uint32_t checksum = ChecksumOf(config);
  EXPECT_EQ(ChecksumOf(config), checksum);
  config.set_seed(2);
  EXPECT_NE(ChecksumOf(config), checksum);
}

}  // namespace
}  // namespace skein
