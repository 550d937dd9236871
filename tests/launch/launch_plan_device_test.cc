// SPDX-License-Identifier: Apache-2.0
// Plans of sync.mode on_device.
#include "gmock/gmock.h"
#include "launch/launch_plan.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LaunchOptions OnDevice(const std::string& env) {
  LaunchOptions options;
  options.env_id = env;
  options.overrides = {"sync.mode=on_device"};
  return options;
}

TEST(LaunchPlanOnDevice, HasNoActorsAndShortIterations) {
  const auto plan = PlanLaunch(OnDevice("UavCover-v0"), 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->on_device);
  EXPECT_THAT(plan->actor_runners, IsEmpty());
  EXPECT_EQ(plan->config.rollout().num_envs(), 512u);  // 16384 / 32
  EXPECT_THAT(plan->notes, ElementsAre("no actors: 512 environments step on the learner's device, 32 steps each in an "
                                       "iteration"));
}

TEST(LaunchPlanOnDevice, PlaysDirectionsInEnvironmentsOfSeveralAgents) {
  LaunchOptions options = OnDevice("UavNavigate-v0");
  options.overrides.insert(options.overrides.end(), {"ars.top_dirs=4", "directions.num_envs=64"});
  const auto plan = PlanLaunch(options, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->on_device);
  EXPECT_THAT(plan->notes, ElementsAre("no actors: 32 directions x 2 signs x 64 episodes are played on the learner's "
                                       "device, all at once"));
  options.learners = 2;
  EXPECT_THAT(std::string(PlanLaunch(options, 4).status().message()), HasSubstr("ars has one learner"));
  options.learners = 1;
  options.overrides.push_back("sync.mode=on_policy");
  EXPECT_THAT(
      std::string(PlanLaunch(options, 4).status().message()),
      HasSubstr("has 10 agents; actors search over directions in environments of one agent, sync.mode on_device"));
}

TEST(LaunchPlanOnDevice, IgnoresRunnersAndSaysSo) {
  LaunchOptions options = OnDevice("UavNavigate-v0");
  options.num_envs = 64;
  options.runners = "3";
  const auto plan = PlanLaunch(options, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 64u);
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("no actors: 64"), HasSubstr("--runners and --actors mean nothing")));
}

TEST(LaunchPlanOnDevice, EachLearnerHasAGroupOfEnvironments) {
  LaunchOptions options = OnDevice("UavNavigate-v0");
  options.num_envs = 32;  // 2 env groups of 16.
  options.learners = 3;
  const auto plan = PlanLaunch(options, 4);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("--learners 3: 32 environments in env groups of"));
}

TEST(LaunchPlanOnDevice, RefusesEnvironmentsWithoutTensorForm) {
  const auto plan = PlanLaunch(OnDevice("HalfCheetah-v5"), 4);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("HalfCheetah-v5 has no such form; CartPole-v1, UavCover-v0 and"));
}

TEST(LaunchPlanOnDevice, RefusesUavsThatDoNotFit) {
  LaunchOptions options = OnDevice("UavNavigate-v0");
  options.overrides.push_back("env.uav.size=3");
  const auto plan = PlanLaunch(options, 4);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("env.uav.obstacles"));
}

}  // namespace
}  // namespace skein
