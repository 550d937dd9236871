// SPDX-License-Identifier: Apache-2.0
#include "launch/recipe.h"

#include "base/config/config.h"
#include "base/process/file.h"
#include "env/registry.h"
#include "gmock/gmock.h"
#include "launch/launch_plan.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

LaunchOptions Train(const std::string& env) {
  LaunchOptions options;
  options.recipe = "auto";
  options.env_id = env;
  return options;
}

TEST(Recipe, EachShippedEnvironmentHasOneThatIsItsFileAndPlansARun) {
  std::vector<std::string> with, all;
  for (const Recipe& recipe : ListRecipes()) with.push_back(recipe.env_id);
  for (const EnvInfo& env : ListEnvs()) all.push_back(env.id);
  EXPECT_EQ(with, all);
  for (const Recipe& recipe : ListRecipes()) {
    EXPECT_EQ(ReadFile(recipe.file).value_or("no such file"), recipe.text) << recipe.file;
    const auto plan = PlanLaunch(Train(recipe.env_id), 4);
    ASSERT_TRUE(plan.ok()) << recipe.file << ": " << plan.status();
    EXPECT_EQ(plan->config.env().id(), recipe.env_id);
    EXPECT_THAT(plan->notes.front(), StartsWith("recipe: " + recipe.file + ", made for " + recipe.env_id));
    // The same run as with the file named, but for who named it.
    const auto named = PlanLaunch({.config_path = recipe.file}, 4);
    ASSERT_TRUE(named.ok()) << named.status();
    EXPECT_EQ(ToYaml(plan->config), ToYaml(named->config));
  }
}

TEST(Recipe, TheUsersSettingsWin) {
  LaunchOptions options = Train("CartPole-v1");
  options.steps = 5000;
  options.overrides = {"ppo.lr=0.5", "model.hidden=[8]"};
  const auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.total_steps(), 5000u);
  EXPECT_EQ(plan->config.ppo().lr(), 0.5);
  EXPECT_EQ(plan->config.model().hidden_size(), 1);
  EXPECT_EQ(plan->config.ppo().epochs(), 10u);  // The recipe's.
}

TEST(Recipe, IsLeftOutWithAConfigurationUnlessAskedFor) {
  const ScratchFolder folder;
  const std::string mine = folder.Write("mine.yaml", "env:\n  id: CartPole-v1\nppo:\n  lr: 0.5\n");
  LaunchOptions options{.recipe = "auto", .config_path = mine};
  auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.ppo().epochs(), 5u);  // The default.
  EXPECT_THAT(plan->notes.front(), AllOf(HasSubstr("mine.yaml leaves rollout.steps_per_iteration open: it is 16384"),
                                         HasSubstr("--recipe general"), HasSubstr("skein envs CartPole-v1 --recipe")));
  options.overrides = {"rollout.steps_per_iteration=2048", "ppo.minibatch_size=64"};
  EXPECT_TRUE(PlanLaunch(options, 2)->notes.empty());
  options.overrides = {"ars={}"};  // Has no such size; and ppo.lr is not read.
  options.config_path = folder.Write("search.yaml", "env:\n  id: CartPole-v1\n");
  plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const std::string& note : plan->notes) EXPECT_THAT(note, Not(HasSubstr("steps_per_iteration open")));
  options = {.recipe = "auto", .config_path = mine};
  options.env_id = "Pendulum-v1";
  EXPECT_EQ(PlanLaunch(options, 2)->config.rollout().steps_per_iteration(), 16384u);

  options = {.recipe = "configs/cartpole_ppo.yaml", .config_path = mine};
  plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.ppo().lr(), 0.5);
  EXPECT_EQ(plan->config.ppo().epochs(), 10u);
  EXPECT_EQ(plan->notes.front(), "recipe: configs/cartpole_ppo.yaml");
}

TEST(Recipe, NoneAndStudyKeepTheStudysSizes) {
  LaunchOptions options = Train("CartPole-v1");
  options.recipe = "none";
  const auto none = PlanLaunch(options, 2);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->config.rollout().steps_per_iteration(), 16384u);
  EXPECT_EQ(none->config.ppo().minibatch_size(), 4096u);
  options.recipe = "study";
  const auto study = PlanLaunch(options, 2);
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(ToYaml(study->config), ToYaml(none->config));
  EXPECT_THAT(study->notes.front(), StartsWith("recipe: configs/study.yaml, the sizes of the scaling study"));
}

TEST(Recipe, HasNoSizesForASearch) {
  const auto chosen = ChooseRecipe("auto", "", {"env.id=HalfCheetah-v5", "ars={}"}, 1, "skein train");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(chosen->settings.has_rollout());
}

TEST(Recipe, ARunNeedsAnEnvironmentOrAConfiguration) {
  for (const LaunchOptions& options : {LaunchOptions{.recipe = "auto"}, LaunchOptions{.recipe = "auto", .seed = 3}}) {
    const absl::Status status = PlanLaunch(options, 2).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("`skein train --env CartPole-v1`"), HasSubstr("`skein train --config mine.yaml`")));
  }
  LaunchOptions set{.recipe = "auto", .overrides = {"env.id=CartPole-v1"}};
  EXPECT_THAT(PlanLaunch(set, 2)->notes.front(), StartsWith("recipe: configs/cartpole_ppo.yaml"));
  const absl::Status typo = PlanLaunch({.recipe = "stduy"}, 2).status();
  EXPECT_TRUE(absl::IsNotFound(typo));
  EXPECT_THAT(std::string(typo.message()),
              HasSubstr("want auto, general, study, none or a YAML file; the nearest is 'study'"));
  EXPECT_THAT(std::string(PlanLaunch({.recipe = "/mine.yaml"}, 2).status().message()), Not(HasSubstr("nearest")));
  EXPECT_THAT(std::string(PlanLaunch(Train("CartPole-v7"), 2).status().message()), HasSubstr("'CartPole-v1'"));
}

TEST(Recipe, AnotherAlgorithmReplacesTheRecipes) {
  LaunchOptions options = Train("CartPole-v1");
  options.overrides = {"reinforce.lr=0.01"};
  const auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->config.has_reinforce());
  EXPECT_EQ(plan->config.rollout().steps_per_iteration(), 1024u);
}

// HalfCheetah's recipe has 64 environments, 32 a runner, and 2,048 steps in an iteration.
TEST(Recipe, SizesOfTheUserAreFitted) {
  struct Case {
    std::vector<std::string> overrides;
    uint32_t learners, envs, envs_per_runner;
  };
  for (const Case& c : std::vector<Case>{{{"rollout.num_envs=16"}, 1, 16, 16},
                                         {{"rollout.num_envs=48", "rollout.steps_per_iteration=1536"}, 1, 48, 24},
                                         {{"rollout.envs_per_runner=16"}, 1, 64, 16},
                                         // 2 runners of 128: 64 are no multiple.
                                         {{"rollout.envs_per_runner=128"}, 1, 256, 128},
                                         {{}, 4, 64, 16},
                                         {{"rollout.num_envs=8"}, 2, 8, 4},
                                         {{"rollout.steps_per_iteration=1600"}, 1, 64, 32}}) {
    LaunchOptions options = Train("HalfCheetah-v5");
    options.overrides = c.overrides;
    options.learners = c.learners;
    const auto plan = PlanLaunch(options, std::max(2u, c.learners));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->config.rollout().num_envs(), c.envs);
    EXPECT_EQ(plan->config.rollout().envs_per_runner(), c.envs_per_runner);
  }
  LaunchOptions options = Train("UavNavigate-v0");  // Minibatches of 4,096.
  options.overrides = {"rollout.steps_per_iteration=512"};
  const auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.ppo().minibatch_size(), 512u);
}

TEST(Recipe, GeneralSettingsPlanARunOfEveryEnvironment) {
  for (const EnvInfo& env : ListEnvs()) {
    LaunchOptions options = Train(env.id);
    options.recipe = "general";
    const auto plan = PlanLaunch(options, 2);
    ASSERT_TRUE(plan.ok()) << env.id << ": " << plan.status();
    EXPECT_EQ(plan->config.rollout().steps_per_iteration(), 2048u);
    EXPECT_EQ(plan->config.ppo().minibatch_size(), 64u * env.spec.num_agents);  // 32 gradient steps an epoch.
    EXPECT_THAT(plan->notes.front(), StartsWith("recipe: configs/general_ppo.yaml: short iterations"));
  }
  LaunchOptions team = Train("UavNavigate-v0");
  team.recipe = "general";
  team.overrides = {"env.uav.uavs=64"};
  EXPECT_EQ(PlanLaunch(team, 2)->config.ppo().minibatch_size(), 2048u);  // 64 x 64, but an iteration is 2,048.
}

}  // namespace
}  // namespace skein
