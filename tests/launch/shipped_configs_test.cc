// SPDX-License-Identifier: Apache-2.0
// The files in configs/: each makes a run, on two cores.
#include <filesystem>
#include <set>
#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "launch/launch_plan.h"

namespace skein {
namespace {

using google::protobuf::util::MessageDifferencer;
constexpr char kOfFit[] = "configs/deeplog_hdfs.yaml";  // Of skein fit, which has its own test of it.

absl::StatusOr<LaunchPlan> Plan(const std::string& path) {
  LaunchOptions options;
  options.config_path = path;
  return PlanLaunch(options, 2);
}

std::set<std::string> ShippedConfigs() {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.is_regular_file() && entry.path() != kOfFit) paths.insert(entry.path());
  }
  return paths;
}

TEST(ShippedConfigs, AllMakeARun) {
  const std::set<std::string> paths = ShippedConfigs();
  EXPECT_GE(paths.size(), 30u);
  for (const std::string& path : paths) {
    const auto plan = Plan(path);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_FALSE(plan->actor_runners.empty()) << path;
  }
}

// Clears what differs between the two of the quadruped: the bands of tilt and knees, and what knees and an unbroken
// streak weigh.
void ClearBands(v1::MujocoConfig* task) {
  task->clear_upright_range();
  task->clear_knee_range();
  task->clear_streak_weight();
  task->clear_knee_weight();
}

// What one learns there is to be compared with what the other does.
TEST(ShippedConfigs, BothOfTheQuadrupedHaveTheSameTaskAndPhasesButForBands) {
  auto ars = Plan("configs/quadruped_stand_ars.yaml"), ppo = Plan("configs/quadruped_stand_ppo.yaml");
  ASSERT_TRUE(ars.ok()) << ars.status();
  ASSERT_TRUE(ppo.ok()) << ppo.status();
  ClearBands(ars->config.mutable_env()->mutable_mujoco());
  ClearBands(ppo->config.mutable_env()->mutable_mujoco());
  EXPECT_TRUE(MessageDifferencer::Equals(ars->config.env(), ppo->config.env()));
  ASSERT_EQ(ars->config.phases_size(), 2);
  ASSERT_EQ(ppo->config.phases_size(), 2);
  for (int i = 0; i < 2; ++i) {
    v1::PhaseConfig of_ars = ars->config.phases(i), of_ppo = ppo->config.phases(i);
    of_ars.clear_until_steps();
    of_ppo.clear_until_steps();
    ClearBands(of_ars.mutable_set()->mutable_env()->mutable_mujoco());
    ClearBands(of_ppo.mutable_set()->mutable_env()->mutable_mujoco());
    if (i == 0) of_ars.mutable_set()->mutable_env()->mutable_mujoco()->clear_reset_noise_scale();
    EXPECT_TRUE(MessageDifferencer::Equals(of_ars, of_ppo)) << "phase " << i + 1;
  }
}

}  // namespace
}  // namespace skein
