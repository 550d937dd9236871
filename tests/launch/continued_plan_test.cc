// SPDX-License-Identifier: Apache-2.0
// Plans of runs that go on, and how many env groups a run has that begins.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "launch/launch_plan.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SizesBefore Before(uint32_t runners, uint32_t envs_per_runner) {
  return [=](const v1::RunConfig&) {
    return RunSizes{.runners = runners, .envs_per_runner = envs_per_runner, .num_envs = runners * envs_per_runner};
  };
}

TEST(LaunchPlan, SizesOfFewerGroupsThanLearnersAreNotUsed) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.learners = 2;
  const auto plan = PlanLaunch(options, 1, Before(1, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1, 1));
  EXPECT_THAT(plan->notes, ElementsAre("runners: one for each of 2 learners"));
}

TEST(LaunchPlan, ARunThatGoesOnKeepsItsSizes) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  const auto plan = PlanLaunch(options, 2, Before(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_EQ(plan->config.rollout().envs_per_runner(), 64u);
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);  // 4 x 64.
  EXPECT_THAT(plan->notes, ElementsAre("runners: 4 with 64 environments each, as in the run that this continues"));
}

TEST(LaunchPlan, WhatTheUserSaysWinsOverTheSizesBefore) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runners = "1";
  auto plan = PlanLaunch(options, 2, Before(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1));
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);  // Which runners do not change.

  options.runners = "auto";
  options.overrides = {"rollout.envs_per_runner=8"};
  plan = PlanLaunch(options, 2, Before(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("one for each of 2 cores")));
  plan = PlanLaunch(options, 2, Before(4, 8));  // The same environments.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
}

TEST(LaunchPlan, WithoutFittingSizesTheRuleHolds) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.overrides = {"rollout.steps_per_iteration=8000"};
  auto plan = PlanLaunch(options, 2, Before(4, 64));  // 8000 / 256 = 31.25.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  plan = PlanLaunch(options, 1, [](const v1::RunConfig&) { return std::nullopt; });
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->notes,
              ElementsAre("runners: one for each of 1 core; `skein tune` would measure what suits this node"));
}

TEST(LaunchPlan, OverlappedEachRunnerHasASecondGroupIfAnIterationAllows) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.overrides = {"sync.mode=overlapped"};
  options.envs_per_runner = 32;
  options.runners = "4";
  auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);  // 4 x 2 x 32.

  options.overrides.push_back("rollout.steps_per_iteration=4000");  // 125 x 32: an odd number of groups.
  options.overrides.push_back("ppo.minibatch_size=1000");
  options.runners = "1";
  plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1));
  EXPECT_EQ(plan->config.rollout().num_envs(), 32u);

  options.envs_per_runner = std::nullopt;
  options.overrides = {"sync.mode=overlapped"};
  const auto envs = [&options](const std::string& runners, const std::string& setting) {
    LaunchOptions with = options;
    with.runners = runners;
    with.overrides.push_back(setting);
    const auto one = PlanLaunch(with, 2);
    return one.ok() ? one->config.rollout().num_envs() : 0;
  };
  EXPECT_EQ(envs("2", "seed=1"), 64u);
  EXPECT_EQ(envs("2", "rollout.fragment_steps=256"), 64u);
  EXPECT_EQ(envs("2", "rollout.fragment_steps=512"), 32u);  // All of the 512 steps that 32 environments leave.
  EXPECT_EQ(envs("16", "seed=1"), 512u);
  EXPECT_EQ(envs("32", "seed=1"), 512u);  // 16 steps would be few.
  options.actors = 0;
  EXPECT_EQ(envs("auto", "seed=1"), 64u);  // A head counts on two runners.
  options.actors = 1;

  options.num_envs = 160;  // What the user says is so.
  options.envs_per_runner = 32;
  options.runners = "1";
  options.overrides = {"sync.mode=overlapped", "rollout.steps_per_iteration=4000", "ppo.minibatch_size=1000"};
  plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 160u);
}

TEST(SizesInRunFolder, AnOverlappedRunGoesOnWithTheSizesItBeganWith) {
  const struct {
    const char* sizes;
    LaunchOptions options;
    uint32_t cores, num_envs, runners;
  } cases[] = {{"num_envs: 128", {}, 6, 128, 6},  // Six cores begin with eight groups, as twelve do not divide 16,384.
               {"num_envs: 128", {}, 2, 128, 4},  // As it may have begun.
               {"num_envs: 64", {}, 16, 64, 4},
               {"num_envs: 64", {.actors = 4}, 1, 64, 4},
               {"num_envs: 32", {.learners = 2}, 1, 32, 2},
               {"num_envs: 64", {.runners = "1"}, 8, 64, 1},
               {"num_envs: 64", {.runners = "8"}, 8, 64, 4},
               {"num_envs: 256", {.resume = "never"}, 2, 64, 2},
               {"num_envs: 256", {.overrides = {"rollout.num_envs=0"}}, 2, 256, 8}};
  for (const auto& c : cases) {
    const ScratchFolder folder;
    folder.Write(
        "CartPole-v1-s1/config.yaml",
        absl::StrCat("sync:\n  mode: overlapped\nrollout:\n  steps_per_iteration: 16384\n  envs_per_runner: 16\n  ",
                     c.sizes, "\n"));
    folder.Write("CartPole-v1-s1/checkpoints/step_000000016384/DONE", "");
    LaunchOptions options = c.options;
    options.env_id = "CartPole-v1";
    options.runs_dir = folder.path();
    options.overrides.push_back("sync.mode=overlapped");
    const auto plan = PlanLaunch(options, c.cores, SizesInRunFolder(options));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->config.rollout().num_envs(), c.num_envs) << c.sizes;
    EXPECT_EQ(std::accumulate(plan->actor_runners.begin(), plan->actor_runners.end(), 0u), c.runners) << c.sizes;
  }

  const ScratchFolder failed;  // Before its first checkpoint: nothing goes on.
  failed.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 256\n  envs_per_runner: 16\n");
  LaunchOptions anew;
  anew.env_id = "CartPole-v1";
  anew.runs_dir = failed.path();
  const auto fresh = PlanLaunch(anew, 2, SizesInRunFolder(anew));
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->config.rollout().num_envs(), 32u);

  const ScratchFolder folder;  // Also at a head, whose workers bring the runners.
  folder.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 256\n  envs_per_runner: 16\n");
  folder.Write("CartPole-v1-s1/checkpoints/step_000000016384/DONE", "");
  LaunchOptions head;
  head.env_id = "CartPole-v1";
  head.runs_dir = folder.path();
  head.actors = 0;
  const auto plan = PlanLaunch(head, 2, SizesInRunFolder(head));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("(256 environments, 16 a runner, as the run began)")));

  LaunchOptions more;  // Which cannot have more environments.
  more.env_id = "CartPole-v1";
  more.runs_dir = folder.path();
  more.runners = "20";
  const auto all = PlanLaunch(more, 2, SizesInRunFolder(more));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->notes, ElementsAre("note: using 16 of 20 runners: 256 environments, 16 a runner, as the run began"));
}

TEST(SizesInRunFolder, ARunGoesOnWithTheSizesItBeganWith) {
  const ScratchFolder folder;
  folder.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 96\n  envs_per_runner: 32\n");
  folder.Write("CartPole-v1-s1/checkpoints/step_000000009600/DONE", "");
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runs_dir = folder.path();
  options.overrides = {"rollout.steps_per_iteration=9600"};
  const auto plan = PlanLaunch(options, 2, SizesInRunFolder(options));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(3));
  EXPECT_EQ(plan->config.rollout().num_envs(), 96u);
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("as in the run that this continues")));
}

}  // namespace
}  // namespace skein
