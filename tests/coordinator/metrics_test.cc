// SPDX-License-Identifier: Apache-2.0
#include "coordinator/metrics.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

using testing::HasSubstr;

class CoordinatorMetricsTest : public testing::Test {
 protected:
  void AddMember(const char* role, double limit) {
    v1::MemberStatus& member = *status_.add_members();
    member.set_role(role);
    member.mutable_report()->set_limit_env_steps_per_second(limit);
  }
  double Report(const std::string& name) {
    metrics_.RunReported(status_);
    return MetricValue(registry_, name);
  }

  prometheus::Registry registry_;
  CoordinatorMetrics metrics_{&registry_};
  v1::StatusResponse status_;
};

TEST_F(CoordinatorMetricsTest, EfficiencyIsTheRunsRateOverWhatItsActorsCanReach) {
  status_.mutable_progress()->set_env_steps_per_second_60s(30000);
  AddMember("learner", 0);
  AddMember("actor", 40000);
  AddMember("actor", 20000);
  EXPECT_EQ(Report("skein_coordinator_run_efficiency_ratio"), 0.5);  // 30,000 of 60,000.
  EXPECT_EQ(Report("skein_coordinator_run_limit_env_steps_per_second"), 60000);
}

TEST_F(CoordinatorMetricsTest, NothingIsSaidOfEfficiencyWhileALimitIsNotKnown) {
  status_.mutable_progress()->set_env_steps_per_second_60s(30000);
  EXPECT_TRUE(std::isnan(Report("skein_coordinator_run_efficiency_ratio")));
  AddMember("actor", 40000);
  AddMember("actor", 0);
  EXPECT_TRUE(std::isnan(Report("skein_coordinator_run_efficiency_ratio")));
  EXPECT_TRUE(std::isnan(Report("skein_coordinator_run_limit_env_steps_per_second")));
}

// There, and NaN: not a made-up 0.
TEST_F(CoordinatorMetricsTest, WhatNoLearnerHasToldIsNaN) {
  const auto text = [this] { return prometheus::TextSerializer().Serialize(registry_.Collect()); };
  const std::vector<std::string> of_learners = {"env_steps",
                                                "iteration",
                                                "policy_version",
                                                "episodes",
                                                "queued_batches",
                                                "account_env_steps{fate=\"trained\"}",
                                                "account_env_steps{fate=\"lost\"}",
                                                "env_steps_per_second{window=\"60s\"}"};
  const std::vector<std::string> later = {"eta_seconds", "mean_episode_return", "mean_episode_length_env_steps",
                                          "mean_policy_lag_versions"};
  const auto line = [](const std::string& name, const char* value) {
    return absl::StrCat("\nskein_coordinator_run_", name, " ", value, "\n");
  };
  for (const std::string& name : of_learners) EXPECT_THAT(text(), HasSubstr(line(name, "Nan")));
  for (const std::string& name : later) EXPECT_THAT(text(), HasSubstr(line(name, "Nan")));
  EXPECT_THAT(text(), HasSubstr(line("target_env_steps", "Nan")));
  EXPECT_THAT(text(), HasSubstr("\nskein_coordinator_wanted_actors Nan\n"));

  status_.mutable_progress()->set_eta_seconds(-1);
  status_.mutable_progress()->set_target_env_steps(1000);
  AddMember("actor", 0);
  metrics_.RunReported(status_);
  for (const std::string& name : of_learners) EXPECT_THAT(text(), HasSubstr(line(name, "Nan")));
  EXPECT_THAT(text(), HasSubstr(line("target_env_steps", "1000")));
  AddMember("learner", 0);
  metrics_.RunReported(status_);
  for (const std::string& name : of_learners) EXPECT_THAT(text(), HasSubstr(line(name, "0")));
  for (const std::string& name : later) EXPECT_THAT(text(), HasSubstr(line(name, "Nan")));
}

TEST_F(CoordinatorMetricsTest, ShowsWhereTheStatusPageIs) {
  metrics_.SetStatusPage("https://head:8080/");
  EXPECT_EQ(MetricValue(registry_, "skein_coordinator_status_page_info", {{"url", "https://head:8080/"}}), 1);
}

TEST_F(CoordinatorMetricsTest, CountsMembersWhoseDataDoNotPass) {
  AddMember("actor", 0);
  AddMember("actor", 0);
  EXPECT_EQ(Report("skein_coordinator_degraded_members"), 0);
  status_.mutable_members(1)->set_degraded(true);
  EXPECT_EQ(Report("skein_coordinator_degraded_members"), 1);
}

TEST_F(CoordinatorMetricsTest, ShowsWhoIsMissingAtBarriers) {
  metrics_.SetBarrierAbsentees(2);
  EXPECT_EQ(MetricValue(registry_, "skein_coordinator_barrier_absentees"), 2);
  metrics_.SetBarrierAbsentees(0);
  EXPECT_EQ(MetricValue(registry_, "skein_coordinator_barrier_absentees"), 0);
}

}  // namespace
}  // namespace skein
