// SPDX-License-Identifier: Apache-2.0
#include "coordinator/metrics.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

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
  EXPECT_EQ(Report("skein_coordinator_run_limit_env_steps_per_second"), 0);
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
