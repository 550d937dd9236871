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

// The environment of the quadruped without what differs between the two: the bands of tilt and knees, what knees and an
// unbroken streak weigh, and the first phase's start.
v1::EnvConfig WithoutBands(v1::EnvConfig env) {
  v1::MujocoConfig& task = *env.mutable_mujoco();
  task.clear_upright_range();
  task.clear_knee_range();
  task.clear_streak_weight();
  task.clear_knee_weight();
  task.clear_reset_noise_scale();
  return env;
}

// What one learns there is to be compared with what the other does.
TEST(ShippedConfigs, BothOfTheQuadrupedHaveTheSameTaskAndPhasesButForBands) {
  const auto ars = Plan("configs/quadruped_stand_ars.yaml"), ppo = Plan("configs/quadruped_stand_ppo.yaml");
  ASSERT_TRUE(ars.ok()) << ars.status();
  ASSERT_TRUE(ppo.ok()) << ppo.status();
  EXPECT_TRUE(MessageDifferencer::Equals(WithoutBands(ars->config.env()), WithoutBands(ppo->config.env())));
  ASSERT_EQ(ars->config.phases_size(), 2);
  ASSERT_EQ(ppo->config.phases_size(), 2);
  for (int i = 0; i < 2; ++i) {
    const v1::EnvConfig of_ars = WithoutBands(ars->config.phases(i).set().env());
    const v1::EnvConfig of_ppo = WithoutBands(ppo->config.phases(i).set().env());
    EXPECT_TRUE(MessageDifferencer::Equals(of_ars, of_ppo)) << "phase " << i + 1;
  }
}

}  // namespace
}  // namespace skein
