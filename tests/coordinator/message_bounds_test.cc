// SPDX-License-Identifier: Apache-2.0
#include "coordinator/message_bounds.h"

#include <cmath>
#include <limits>

#include "base/net/grpc_transport.h"
#include "base/net/protocol.h"
#include "base/telemetry/stage_names.h"
#include "coordinator/coordinator_state.h"
#include "coordinator/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sets the field to as much as it may have, then to one more: the error.
template <typename Request>
std::string ErrorAbove(size_t bound, void (Request::*set)(const std::string&)) {
  Request request;
  (request.*set)(std::string(bound, 'x'));
  EXPECT_TRUE(CheckBounds(request).ok()) << CheckBounds(request);
  (request.*set)(std::string(bound + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckBounds(request)));
  return std::string(CheckBounds(request).message());
}

TEST(MessageBounds, EachTextHasOneAndTheErrorNamesFieldLengthAndBound) {
  using Join = v1::JoinRequest;
  EXPECT_EQ(ErrorAbove<Join>(255, &Join::set_host), "host has 256 bytes, and may have 255: give a shorter one");
  EXPECT_THAT(ErrorAbove<Join>(300, &Join::set_data_address), StartsWith("data_address has 301 bytes"));
  EXPECT_THAT(ErrorAbove<Join>(300, &Join::set_metrics_address), StartsWith("metrics_address has 301 bytes"));
  EXPECT_THAT(ErrorAbove<Join>(128, &Join::set_run_id), StartsWith("run_id has 129 bytes"));
  const char* const id = "member_id has 129 bytes";
  EXPECT_THAT(ErrorAbove<v1::HeartbeatRequest>(128, &v1::HeartbeatRequest::set_member_id), StartsWith(id));
  EXPECT_THAT(ErrorAbove<v1::LeaveRequest>(128, &v1::LeaveRequest::set_member_id), StartsWith(id));
  EXPECT_THAT(ErrorAbove<v1::BarrierRequest>(128, &v1::BarrierRequest::set_member_id), StartsWith(id));
  EXPECT_THAT(ErrorAbove<v1::DrainRequest>(128, &v1::DrainRequest::set_member_id), StartsWith(id));
}

TEST(MessageBounds, RunnersAndRanksHaveThemToo) {
  v1::JoinRequest request;
  request.set_runners(4096);
  request.set_ranks(4096);
  EXPECT_TRUE(CheckBounds(request).ok());
  request.set_ranks(4097);
  EXPECT_EQ(CheckBounds(request).message(), "ranks is 4097, and may be 4096 at most");
  request.set_runners(4'294'967'295);
  EXPECT_EQ(CheckBounds(request).message(), "runners is 4294967295, and may be 4096 at most");
}

TEST(MessageBounds, SaneNumbersAreWhatCanBeMeasured) {
  for (const double sane : {0.0, 0.5, 1e15}) EXPECT_TRUE(IsSaneNumber(sane)) << sane;
  for (const double other : {kNan, kInfinity, -kInfinity, -1e-9, 1.1e15}) EXPECT_FALSE(IsSaneNumber(other)) << other;
}

TEST(MessageBounds, AReportKeepsKnownStagesWithSaneNumbersOnly) {
  v1::MemberReport report;
  auto& stages = *report.mutable_stage_seconds();
  for (const char* stage : kActorStages) stages[stage] = 1;
  for (int i = 0; i < 1000; ++i) stages["x" + std::to_string(i)] = 1;
  stages["env_step"] = kNan;
  stages["build"] = -1;
  stages["send"] = kInfinity;
  stages["update"] = 1;  // A learner's.
  EXPECT_THAT(Bounded(report, v1::ROLE_ACTOR).stage_seconds(),
              UnorderedElementsAre(Pair("inference", 1), Pair("wait", 1)));
  EXPECT_THAT(Bounded(report, v1::ROLE_LEARNER).stage_seconds(), UnorderedElementsAre(Pair("update", 1)));
}

TEST(MessageBounds, NumbersOfAReportThatAreNotSaneBecomeZero) {
  for (const double bad : {kNan, kInfinity, -1.0, 1e300}) {
    v1::MemberReport report;
    report.set_env_steps(7);
    report.set_env_steps_per_second(bad);
    report.set_cpu_ratio(bad);
    report.set_starving_seconds(bad);
    report.set_limit_env_steps_per_second(bad);
    report.set_undelivered_seconds(bad);
    v1::MemberReport zeros;
    zeros.set_env_steps(7);
    EXPECT_EQ(Bounded(report, v1::ROLE_ACTOR).SerializeAsString(), zeros.SerializeAsString()) << bad;
  }
}

TEST(MessageBounds, ErrorsAreCutBetweenCharacters) {
  v1::MemberReport report;
  report.set_last_error(std::string(1024, 'e'));
  EXPECT_EQ(Bounded(report, v1::ROLE_ACTOR).last_error().size(), 1024u);
  report.set_last_error(std::string(900'000, 'e'));
  EXPECT_EQ(Bounded(report, v1::ROLE_ACTOR).last_error(), std::string(1021, 'e') + "...");
  // The euro sign has three bytes: 340 of them are 1,020 bytes, the 341st would end at 1,023.
  std::string euros;
  for (int i = 0; i < 400; ++i) euros += "\xe2\x82\xac";
  report.set_last_error(euros);
  EXPECT_EQ(Bounded(report, v1::ROLE_ACTOR).last_error(), euros.substr(0, 1020) + "...");
}

TEST(MessageBounds, WhatThisVersionDoesNotKnowIsNotKept) {
  v1::JoinRequest unknown;  // Its field 11 is none of a report.
  unknown.set_ranks(5);
  v1::MemberReport report;
  ASSERT_TRUE(report.ParseFromString(unknown.SerializeAsString()));
  ASSERT_GT(report.ByteSizeLong(), 0u);
  EXPECT_EQ(Bounded(report, v1::ROLE_ACTOR).ByteSizeLong(), 0u);
}

TEST(MessageBounds, OfProgressOnlySaneNumbersAreKept) {
  v1::RunProgress progress;
  progress.set_state(static_cast<v1::RunState>(77));
  progress.set_env_steps_per_second_10s(kNan);
  progress.set_env_steps_per_second_60s(-1);
  progress.set_env_steps_per_second_300s(kInfinity);
  progress.set_mean_episode_return(-kInfinity);
  progress.set_mean_episode_length(-1);
  progress.set_mean_policy_lag(kNan);
  progress.set_eta_seconds(kNan);
  (*progress.mutable_stage_seconds())["update"] = kNan;
  (*progress.mutable_stage_seconds())["publish"] = 2;
  (*progress.mutable_losses())["kl"] = -0.5;
  (*progress.mutable_losses())["entropy"] = kNan;
  progress.set_checkpoint(std::string(5000, '/'));
  progress.set_last_error(std::string(5000, 'e'));
  const v1::RunProgress kept = Bounded(progress);
  EXPECT_EQ(kept.state(), v1::RUN_STATE_UNSPECIFIED);
  EXPECT_EQ(kept.env_steps_per_second_10s(), 0);
  EXPECT_EQ(kept.env_steps_per_second_60s(), 0);
  EXPECT_EQ(kept.env_steps_per_second_300s(), 0);
  EXPECT_TRUE(std::isnan(kept.mean_episode_return()));
  EXPECT_TRUE(std::isnan(kept.mean_episode_length()));
  EXPECT_EQ(kept.mean_policy_lag(), 0);
  EXPECT_EQ(kept.eta_seconds(), -1);
  EXPECT_THAT(kept.stage_seconds(), ElementsAre(Pair("publish", 2)));
  EXPECT_THAT(kept.losses(), ElementsAre(Pair("kl", -0.5)));
  EXPECT_EQ(kept.checkpoint().size(), 4096u);
  EXPECT_EQ(kept.last_error().size(), 1024u);
  for (int i = 0; i < 1000; ++i) progress.add_warnings(std::string(5000, 'w'));
  ASSERT_EQ(Bounded(progress).warnings_size(), 16);
  EXPECT_EQ(Bounded(progress).warnings(15).size(), 1024u);
  progress.set_mean_episode_return(-250);  // A return may well be negative.
  EXPECT_EQ(Bounded(progress).mean_episode_return(), -250);
}

TEST(MessageBounds, LossesAndMetricsOfEpisodesAreSoManyWithPrintableShortNames) {
  v1::RunProgress progress;
  auto& metrics = *progress.mutable_episode_metrics();
  metrics[std::string(64, 'a')] = 1;
  metrics[std::string(65, 'b')] = 1;
  metrics["a\x1b[2J"] = 1;
  for (int i = 0; i < 1000; ++i) metrics["m" + std::to_string(i)] = i;
  *progress.mutable_callback_metrics() = metrics;
  const v1::RunProgress kept = Bounded(progress);
  EXPECT_EQ(kept.episode_metrics().size(), 64u);
  EXPECT_EQ(kept.callback_metrics().size(), 64u);
  EXPECT_EQ(kept.episode_metrics().count(std::string(64, 'a')), 1u);
  EXPECT_EQ(kept.episode_metrics().count(std::string(65, 'b')), 0u);
  EXPECT_EQ(kept.episode_metrics().count("a\x1b[2J"), 0u);
}

class StateWithTheMostTest : public testing::Test {
 protected:
  static CoordinatorState::Options OptionsOf() {
    CoordinatorState::Options options;
    options.run_id = "run7";
    options.config.mutable_coordinator()->set_lease_seconds(5);
    return options;
  }
  // Of a member that sends as much as it can.
  v1::JoinResponse Join(v1::Role role) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(role);
    request.set_host(std::string(kMostHostBytes, 'h'));
    request.set_pid(-1);  // Ten bytes.
    request.set_data_address(std::string(kMostAddressBytes, 'd'));
    request.set_metrics_address(std::string(kMostAddressBytes, 'm'));
    request.set_ranks(kMostRanks);
    request.set_rank(kMostRanks - 1);
    request.set_runners(kMostRunners);
    EXPECT_TRUE(CheckBounds(request).ok());
    const auto joined = state_.Join(request, absl::ZeroDuration(), &effects_);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(v1::JoinResponse());
  }
  void Beat(const v1::JoinResponse& member, double number) {
    v1::HeartbeatRequest beat;
    beat.set_member_id(member.member_id());
    beat.set_generation(member.generation());
    v1::MemberReport& report = *beat.mutable_report();
    report.set_env_steps(~uint64_t{0});
    report.set_env_steps_per_second(number);
    report.set_policy_version(~uint64_t{0});
    report.set_cpu_ratio(number);
    report.set_resident_bytes(~uint64_t{0});
    for (const char* stage : kActorStages) (*report.mutable_stage_seconds())[stage] = number;
    for (const char* stage : kLearnerStages) (*report.mutable_stage_seconds())[stage] = number;
    for (int i = 0; i < 1000; ++i) (*report.mutable_stage_seconds())["x" + std::to_string(i)] = number;
    report.set_last_error(std::string(100'000, 'e'));
    report.set_starving_seconds(number);
    report.set_limit_env_steps_per_second(number);
    report.set_undelivered_seconds(number);
    v1::RunProgress& progress = *beat.mutable_progress();
    progress.set_last_error(std::string(100'000, 'e'));
    progress.set_checkpoint(std::string(100'000, 'c'));
    progress.set_checkpoint_digest(std::string(100'000, 'd'));
    for (int i = 1000; i < 2000; ++i) {
      const std::string name = std::to_string(i) + std::string(60, 'x');
      (*progress.mutable_losses())[name] = number;
      (*progress.mutable_episode_metrics())[name] = number;
    }
    EXPECT_TRUE(state_.Heartbeat(beat, absl::ZeroDuration(), &effects_).ok());
  }

  Effects effects_;
  CoordinatorState state_{OptionsOf()};
};

TEST_F(StateWithTheMostTest, AStatusOfAsManyMembersAsThereCanBeIsAMessageThatCanBeSent) {
  static constexpr size_t kOwn = 16 << 10;  // Names and folder of the run, as the user who started it gave them.
  const std::string longest_id = "actor-18446744073709551615";
  Beat(Join(v1::ROLE_LEARNER), 1);
  Beat(Join(v1::ROLE_ACTOR), 1);
  v1::StatusResponse status = state_.Status(absl::Seconds(1));
  ASSERT_EQ(status.members_size(), 2);
  size_t most = 0;
  for (v1::MemberStatus& member : *status.mutable_members()) {
    member.set_member_id(longest_id);
    member.set_learner_id(longest_id);
    member.set_draining(true);
    member.set_degraded(true);
    member.set_generation(~uint64_t{0});
    most = std::max(most, member.ByteSizeLong() + 4);  // Its tag and length.
  }
  EXPECT_GT(most, 255u + 300 + 1024);  // Of text alone.
  status.clear_members();
  EXPECT_LT(status.ByteSizeLong() + kOwn + (kMostActors + kMostRanks) * most, static_cast<size_t>(kMaxMessageBytes));
}

TEST_F(StateWithTheMostTest, ANanIsInNobodysTotals) {
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  History history;
  for (const double seconds : {1.0, kNan, 3.0}) {
    Beat(actor, seconds);
    history.Add(state_.Status(absl::Seconds(seconds)), absl::Seconds(1));
  }
  EXPECT_EQ(history.newest().actor_stages.size(), kActorStages.size());
  EXPECT_EQ(history.newest().actor_stages.at("wait"), 2);  // From 1 to 3.
  Beat(actor, kNan);
  history.Add(state_.Status(absl::Seconds(1)), absl::Seconds(2));
  EXPECT_TRUE(std::isnan(history.newest().efficiency));  // Not known, as of an actor that has no limit.
  EXPECT_EQ(state_.Status(absl::Seconds(1)).members(0).report().limit_env_steps_per_second(), 0);
}

}  // namespace
}  // namespace skein
