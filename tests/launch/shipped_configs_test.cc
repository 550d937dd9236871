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

// What one learns there is to be compared with what the other does. Knees weigh more in the search.
TEST(ShippedConfigs, BothOfTheQuadrupedEndWithTheSameTaskButForTheWeightOfKnees) {
  auto ars = Plan("configs/quadruped_stand_ars.yaml"), ppo = Plan("configs/quadruped_stand_ppo.yaml");
  ASSERT_TRUE(ars.ok()) << ars.status();
  ASSERT_TRUE(ppo.ok()) << ppo.status();
  EXPECT_GT(ars->config.phases_size(), 0);
  EXPECT_GT(ppo->config.phases_size(), 0);
  ars->config.mutable_env()->mutable_mujoco()->clear_knee_weight();
  ppo->config.mutable_env()->mutable_mujoco()->clear_knee_weight();
  EXPECT_TRUE(MessageDifferencer::Equals(ars->config.env(), ppo->config.env()));
}

}  // namespace
}  // namespace skein
