// SPDX-License-Identifier: Apache-2.0
// Plans that follow what `skein tune` found, or the run that they go on with.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "cli/launch_plan.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TuneLookup Tuned(uint32_t runners, uint32_t envs_per_runner) {
  return [=](const v1::RunConfig&) {
    return TuneChoice{.runners = runners, .envs_per_runner = envs_per_runner, .source = "by somebody"};
  };
}

TEST(LaunchPlan, WhatWasTunedWithFewerRunnersThanLearnersIsNotUsed) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.learners = 2;
  const auto one = [](const v1::RunConfig&) { return TuneChoice{.runners = 1, .envs_per_runner = 64}; };
  const auto plan = PlanLaunch(options, 1, one);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1, 1));
  EXPECT_THAT(plan->notes, ElementsAre("runners: one for each of 2 learners"));
}

TEST(LaunchPlan, AutomaticRunnersAreWhatWasTuned) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  const auto plan = PlanLaunch(options, 2, Tuned(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_EQ(plan->config.rollout().envs_per_runner(), 64u);
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);  // 4 x 64.
  EXPECT_THAT(plan->notes, ElementsAre("runners: 4 with 64 environments each, by somebody"));
}

TEST(LaunchPlan, WhatTheUserSaysWinsOverWhatWasTuned) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runners = "1";
  auto plan = PlanLaunch(options, 2, Tuned(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1));
  EXPECT_THAT(plan->notes, IsEmpty());

  options.runners = "auto";
  options.overrides = {"rollout.envs_per_runner=8"};
  plan = PlanLaunch(options, 2, Tuned(4, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("one for each of 2 cores; what `skein tune` has found does not fit")));
  plan = PlanLaunch(options, 2, Tuned(4, 8));  // The same environments: the runners count.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));

  options.overrides = {"rollout.num_envs=32"};
  plan = PlanLaunch(options, 1, Tuned(8, 64));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));  // 32 / 16 blocks.
  EXPECT_EQ(plan->config.rollout().envs_per_runner(), 16u);
}

TEST(LaunchPlan, WithoutAFittingChoiceTheRuleHolds) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.overrides = {"rollout.steps_per_iteration=8000"};
  auto plan = PlanLaunch(options, 2, Tuned(4, 64));  // 8000 / 256 = 31.25.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  plan = PlanLaunch(options, 1, [](const v1::RunConfig&) { return std::nullopt; });
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->notes,
              ElementsAre("runners: one for each of 1 core; `skein tune` would measure what suits this node"));
}

TEST(LaunchPlan, OverlappedEachRunnerHasASecondBlockIfAnIterationAllows) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.overrides = {"sync.mode=overlapped"};
  auto plan = PlanLaunch(options, 2, Tuned(4, 32));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);  // 4 x 2 x 32.

  options.overrides.push_back("rollout.steps_per_iteration=4000");  // 125 x 32: an odd number of blocks.
  options.overrides.push_back("ppo.minibatch_size=1000");
  plan = PlanLaunch(options, 2, Tuned(1, 32));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1));
  EXPECT_EQ(plan->config.rollout().num_envs(), 32u);

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
  options.overrides = {"sync.mode=overlapped", "rollout.steps_per_iteration=4000", "ppo.minibatch_size=1000"};
  plan = PlanLaunch(options, 2, Tuned(1, 32));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 160u);
}

TEST(TunedForThisNode, AnOverlappedRunGoesOnWithTheSizesItBeganWith) {
  const struct {
    const char* sizes;
    LaunchOptions options;
    uint32_t cores, num_envs, runners;
  } cases[] = {{"num_envs: 128", {}, 6, 128, 6},  // Six cores begin with eight blocks, as twelve do not divide 16,384.
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
    const auto plan = PlanLaunch(options, c.cores, TunedForThisNode(options));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->config.rollout().num_envs(), c.num_envs) << c.sizes;
    EXPECT_EQ(std::accumulate(plan->actor_runners.begin(), plan->actor_runners.end(), 0u), c.runners) << c.sizes;
  }

  const ScratchFolder failed;  // Before its first checkpoint: nothing goes on.
  failed.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 256\n  envs_per_runner: 16\n");
  LaunchOptions anew;
  anew.env_id = "CartPole-v1";
  anew.runs_dir = failed.path();
  const auto fresh = PlanLaunch(anew, 2, TunedForThisNode(anew));
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->config.rollout().num_envs(), 32u);

  const ScratchFolder folder;  // Also at a head, whose workers bring the runners.
  folder.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 256\n  envs_per_runner: 16\n");
  folder.Write("CartPole-v1-s1/checkpoints/step_000000016384/DONE", "");
  LaunchOptions head;
  head.env_id = "CartPole-v1";
  head.runs_dir = folder.path();
  head.actors = 0;
  const auto plan = PlanLaunch(head, 2, TunedForThisNode(head));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 256u);
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("(256 environments, 16 a runner, as the run began)")));

  LaunchOptions more;  // Which cannot have more environments.
  more.env_id = "CartPole-v1";
  more.runs_dir = folder.path();
  more.runners = "20";
  const auto all = PlanLaunch(more, 2, TunedForThisNode(more));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->notes, ElementsAre("note: using 16 of 20 runners: 256 environments, 16 a runner, as the run began"));
}

TEST(TunedForThisNode, ARunGoesOnWithTheSizesItBeganWith) {
  const ScratchFolder folder;
  folder.Write("CartPole-v1-s1/config.yaml", "rollout:\n  num_envs: 96\n  envs_per_runner: 32\n");
  folder.Write("CartPole-v1-s1/checkpoints/step_000000009600/DONE", "");
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runs_dir = folder.path();
  options.overrides = {"rollout.steps_per_iteration=9600"};
  const auto plan = PlanLaunch(options, 2, TunedForThisNode(options));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(3));
  EXPECT_EQ(plan->config.rollout().num_envs(), 96u);
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("as in the run that this continues")));
}

}  // namespace
}  // namespace skein
