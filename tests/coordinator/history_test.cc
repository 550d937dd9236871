// SPDX-License-Identifier: Apache-2.0
#include "coordinator/history.h"

#include <limits>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::Pair;

v1::MemberStatus& AddMember(v1::StatusResponse* status, const std::string& id, const std::string& role) {
  v1::MemberStatus& member = *status->add_members();
  member.set_member_id(id);
  member.set_role(role);
  member.set_generation(1);
  return member;
}

v1::StatusResponse WithStage(double wait) {
  v1::StatusResponse status;
  (*AddMember(&status, "actor-1", "actor").mutable_report()->mutable_stage_seconds())["wait"] = wait;
  return status;
}

TEST(History, TakesTheRunsFigures) {
  v1::StatusResponse status;
  v1::RunProgress& progress = *status.mutable_progress();
  progress.set_env_steps(100);
  progress.set_env_steps_per_second_10s(10);
  progress.set_env_steps_per_second_60s(60);
  progress.set_mean_episode_return(5);
  progress.set_mean_policy_lag(0.5);
  AddMember(&status, "actor-1", "actor");
  AddMember(&status, "learner-0", "learner");
  History history;
  history.Add(status, absl::Seconds(7));
  ASSERT_EQ(history.points().size(), 1u);
  const History::Point& point = history.points()[0];
  EXPECT_EQ(point.seconds, 7);
  EXPECT_EQ(point.env_steps, 100u);
  EXPECT_EQ(point.rate_10s, 10);
  EXPECT_EQ(point.rate_60s, 60);
  EXPECT_EQ(point.episode_return, 5);
  EXPECT_EQ(point.policy_lag, 0.5);
  EXPECT_EQ(point.actors, 1);
  EXPECT_TRUE(std::isnan(point.efficiency));
}

TEST(History, EfficiencyIsOfThoseActorsThatKnowTheirLimit) {
  v1::StatusResponse status;
  for (const auto& [rate, limit] : {std::pair{30.0, 50.0}, {60.0, 100.0}, {1000.0, 0.0}}) {
    v1::MemberReport& report = *AddMember(&status, "actor-" + std::to_string(limit), "actor").mutable_report();
    report.set_env_steps_per_second(rate);
    report.set_limit_env_steps_per_second(limit);
  }
  History history;
  history.Add(status, absl::ZeroDuration());
  EXPECT_DOUBLE_EQ(history.newest().efficiency, 0.6);  // (30 + 60) / (50 + 100)
}

TEST(History, StaysBelowItsLimitAndCoversTheWholeRun) {
  History history;
  v1::StatusResponse status;
  constexpr int kSeconds = 5000;
  for (int second = 0; second < kSeconds; ++second) {
    history.Add(status, absl::Seconds(second));
    ASSERT_LE(history.points().size(), History::kMostPoints);
  }
  // 5000 points at every 8th: the strides before that would be 5000, 2500 and 1250.
  EXPECT_EQ(history.stride(), 8u);
  EXPECT_EQ(history.points().size(), 625u);
  for (size_t i = 0; i < history.points().size(); ++i) EXPECT_EQ(history.points()[i].seconds, 8.0 * i);
  EXPECT_EQ(history.newest().seconds, kSeconds - 1);
}

TEST(History, AddsUpStagesOfMembersThatComeAndGo) {
  History history;
  history.Add(WithStage(100), absl::Seconds(0));  // What was before is not of this time.
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 0)));
  v1::StatusResponse status = WithStage(103);
  v1::MemberStatus& learner = AddMember(&status, "learner-0", "learner");
  (*learner.mutable_report()->mutable_stage_seconds())["update"] = 1;
  history.Add(status, absl::Seconds(1));
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 3)));
  EXPECT_THAT(history.newest().learner_stages, ElementsAre(Pair("update", 0)));
  history.Add(v1::StatusResponse(), absl::Seconds(2));  // Both are gone.
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 3)));
  status = WithStage(50);  // Another life.
  status.mutable_members(0)->set_generation(2);
  history.Add(status, absl::Seconds(3));
  (*status.mutable_members(0)->mutable_report()->mutable_stage_seconds())["wait"] = 52;
  history.Add(status, absl::Seconds(4));
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 5)));
  EXPECT_THAT(history.points()[1].actor_stages, ElementsAre(Pair("wait", 3)));
}

TEST(HistoryJson, HasColumnsOfEqualLength) {
  History history;
  v1::StatusResponse status = WithStage(1);
  status.mutable_progress()->set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  history.Add(v1::StatusResponse(), absl::Seconds(0));
  history.Add(status, absl::Seconds(1));
  (*status.mutable_members(0)->mutable_report()->mutable_stage_seconds())["wait"] = 4;
  status.mutable_progress()->set_mean_episode_return(9);
  history.Add(status, absl::Seconds(2));
  const nlohmann::json all = nlohmann::json::parse(HistoryJson(history, History::kMostPoints));
  EXPECT_EQ(all["stride"], 1);
  EXPECT_EQ(all["points"], 3);
  EXPECT_EQ(all["seconds"], (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(all["actor_stages"], (nlohmann::json{{"wait", {0.0, 0.0, 3.0}}}));
  EXPECT_EQ(all["return"][0], 0);
  EXPECT_TRUE(all["return"][1].is_null());
  for (const char* column : {"env_steps", "rate_10s", "rate_60s", "return", "policy_lag", "actors", "efficiency"}) {
    EXPECT_EQ(all[column].size(), 3u) << column;
  }
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 2))["seconds"], (std::vector<double>{1, 2}));
}

TEST(HistoryJson, EndsWithTheNewestPointAlsoIfThatIsNotKept) {
  History history;
  for (int second = 0; second < 1004; ++second) history.Add(v1::StatusResponse(), absl::Seconds(second));
  // Every other one: 0, 2, ... 1002.
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 2))["seconds"], (std::vector<double>{1000, 1002, 1003}));
}

TEST(HistoryJson, IsEmptyBeforeTheFirstPointAndSurvivesTextThatIsNotUtf8) {
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(History(), 10))["seconds"].size(), 0u);
  v1::StatusResponse status;
  (*AddMember(&status, "actor-1", "actor").mutable_report()->mutable_stage_seconds())["\xff"] = 1;
  History history;
  history.Add(status, absl::ZeroDuration());
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 10))["actor_stages"].size(), 1u);
}

}  // namespace
}  // namespace skein
