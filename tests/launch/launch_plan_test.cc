// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_plan.h"

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LaunchPlan, FlagsWinOverTheFileAndSetWinsOverFlags) {
  const ScratchFolder folder;
  LaunchOptions options;
  options.config_path = folder.Write("run.yaml",
                                     "seed: 1\ntotal_steps: 100\nname: from_file\nenv:\n  id: Pendulum-v1\n"
                                     "ppo:\n  lr: 0.5\n");
  options.env_id = "CartPole-v1";
  options.seed = 2;
  options.steps = 200;
  options.overrides = {"seed=3"};
  const auto plan = PlanLaunch(options, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.env().id(), "CartPole-v1");  // Flag over file.
  EXPECT_EQ(plan->config.total_steps(), 200u);        // Flag over file.
  EXPECT_EQ(plan->config.seed(), 3u);                 // --set over flag.
  EXPECT_EQ(plan->config.name(), "from_file");        // Nobody else said.
  EXPECT_EQ(plan->config.ppo().lr(), 0.5);
}

TEST(LaunchPlan, AutomaticRunnersAreOneACoreAndDecideTheEnvironments) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  const auto plan = PlanLaunch(options, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_THAT(plan->notes, IsEmpty());
  EXPECT_EQ(plan->config.rollout().num_envs(), 64u);  // 4 runners x 16 environments each.
}

TEST(LaunchPlan, AutomaticRunnersAreAtMostTheGroupsOfGivenEnvironments) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.num_envs = 32;  // 2 env groups of 16.
  const auto plan = PlanLaunch(options, 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  EXPECT_THAT(plan->notes, ElementsAre("note: using 2 of 8 cores: 32 environments, 16 a runner; more with --envs or a "
                                       "smaller --envs-per-runner"));
}

TEST(LaunchPlan, AutomaticRunnersAreFewerWhereTheirEnvironmentsDoNotDivideAnIteration) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  const auto plan = PlanLaunch(options, 6);  // 16384 is no multiple of 6 x 16 or 5 x 16, but of 4 x 16.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(4));
  EXPECT_THAT(plan->notes, ElementsAre("note: using 4 of 6 cores: 96 environments, 16 a runner, do not divide "
                                       "rollout.steps_per_iteration 16384; another --envs-per-runner may"));
}

TEST(LaunchPlan, GivenRunnersWhoseEnvironmentsDoNotDivideAnIterationAreRefusedWithWhatWouldFit) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runners = "3";
  const auto three = PlanLaunch(options, 8).status();
  EXPECT_TRUE(absl::IsInvalidArgument(three));
  EXPECT_EQ(std::string(three.message()),
            "--runners 3 x --envs-per-runner 16 = 48 environments do not divide rollout.steps_per_iteration 16384; try "
            "--runners 2 or 4, or --set rollout.steps_per_iteration=16368");  // 341 x 48.
  // What is proposed is accepted.
  options.overrides = {"rollout.steps_per_iteration=16368"};
  EXPECT_TRUE(PlanLaunch(options, 8).ok());
  // More runners than an iteration has steps: only fewer fit. 2 x 16 = 32 is no less than a minibatch.
  options.overrides = {"rollout.steps_per_iteration=32", "ppo.minibatch_size=32"};
  EXPECT_THAT(std::string(PlanLaunch(options, 8).status().message()),
              HasSubstr("try --runners 2, or --set rollout.steps_per_iteration=48"));
  // No number of runners fits, given or automatic.
  options.overrides = {"rollout.steps_per_iteration=100", "ppo.minibatch_size=50"};
  EXPECT_THAT(std::string(PlanLaunch(options, 3).status().message()),
              HasSubstr("48 environments do not divide rollout.steps_per_iteration 100; try --set "
                        "rollout.steps_per_iteration=96"));
  options.runners = "auto";
  EXPECT_EQ(std::string(PlanLaunch(options, 3).status().message()),
            "--envs-per-runner 16 does not divide rollout.steps_per_iteration 100; try --set "
            "rollout.steps_per_iteration=96");  // 6 x 16.
}

TEST(LaunchPlan, GivenRunnersBeyondTheGroupsAreLeftOutWithANote) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.num_envs = 32;
  options.runners = "3";
  const auto plan = PlanLaunch(options, 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("using 2 of 3 runners: 32 environments, 16 a runner")));
}

TEST(LaunchPlan, ActorsShareTheRunners) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.runners = "4";
  options.actors = 3;
  const auto plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2, 1, 1));

  options.actors = 5;
  const auto refused = PlanLaunch(options, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("5 processes cannot share 4 runners"));
}

TEST(LaunchPlan, ActorsWithoutWorkAreRefusedByTheNumbersThatWereGiven) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.recipe = "none";
  options.overrides = {"ars.top_dirs=2", "directions.num_dirs=8", "directions.dir_chunk=8"};
  options.runners = "4";
  options.actors = 4;
  EXPECT_EQ(PlanLaunch(options, 8).status().message(),
            "--actors: 4 processes cannot share 1 runner; no more of 4 can work at once (8 directions, 8 a runner)");
}

TEST(LaunchPlan, EachLearnerHasAnActor) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.learners = 3;
  options.runners = "4";
  auto plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->learners, 3u);
  EXPECT_THAT(plan->actor_runners, ElementsAre(2, 1, 1));
  options.actors = 4;
  plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1, 1, 1, 1));
}

TEST(LaunchPlan, AutomaticRunnersAreNoFewerThanLearners) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.learners = 2;
  auto plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1, 1));
  EXPECT_EQ(plan->config.rollout().num_envs(), 32u);  // 2 x 16.
  plan = PlanLaunch(options, 6);                      // 16384 is no multiple of 6 x 16 or 5 x 16, but of 4 x 16.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(2, 2));

  options.learners = 3;
  plan = PlanLaunch(options, 2);  // Nor of 3 x 16: more environments, so that none is without.
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, ElementsAre(1, 1, 1));
  EXPECT_EQ(plan->config.rollout().num_envs(), 64u);  // 4 x 16.
}

TEST(LaunchPlan, LearnersWithoutAnActorOrAGroupAreRefusedWithWhatWouldFit) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.learners = 4;
  options.runners = "3";
  const auto too_few_runners = PlanLaunch(options, 8).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_few_runners));
  EXPECT_EQ(std::string(too_few_runners.message()),
            "--runners 3 are fewer than --learners 4, and each learner needs an actor of its own; try --runners 4 or "
            "--learners 3");
  options.runners = "auto";
  options.num_envs = 32;
  const auto too_few_groups = PlanLaunch(options, 8).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_few_groups));
  EXPECT_EQ(
      std::string(too_few_groups.message()),
      "--learners 4: 32 environments in env groups of --envs-per-runner 16 are 2 groups, and each learner needs one; "
      "try --envs 64, --envs-per-runner 8, or --learners 2");  // 4 x 16; 32 / 4.
  // What is proposed is accepted.
  options.envs_per_runner = 8;
  EXPECT_TRUE(PlanLaunch(options, 8).ok());
  options.envs_per_runner.reset();
  options.num_envs = 64;
  EXPECT_TRUE(PlanLaunch(options, 8).ok());
  options.learners = 2;
  options.num_envs = 32;
  EXPECT_TRUE(PlanLaunch(options, 8).ok());
  // 3 x 16 = 48 environments would not divide an iteration, and 2 environments are not enough whatever the groups.
  options.learners = 3;
  options.num_envs = 2;
  options.envs_per_runner = 2;
  EXPECT_THAT(std::string(PlanLaunch(options, 8).status().message()),
              HasSubstr("are 1 group, and each learner needs one; try --learners 1"));
}

TEST(LaunchPlan, HeadHasAGroupForEachLearner) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.actors = 0;
  options.learners = 4;
  auto plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->learners, 4u);
  EXPECT_EQ(plan->config.rollout().num_envs(), 64u);  // 4 x 16.
  options.num_envs = 32;
  EXPECT_THAT(std::string(PlanLaunch(options, 1).status().message()), HasSubstr("--learners 4: 32 environments"));
  options.learners = 0;  // Started elsewhere: nobody knows how many.
  plan = PlanLaunch(options, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->learners, 0u);
}

TEST(LaunchPlan, TheDeviceGoesIntoTheConfiguration) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  EXPECT_EQ(PlanLaunch(options, 1)->config.learner().device(), "auto");
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "cuda:12"}) {
    options.device = device;
    const auto plan = PlanLaunch(options, 1);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->config.learner().device(), device);
  }
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0"}) {
    options.device = device;
    const auto status = PlanLaunch(options, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << device;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want auto, cpu, cuda or cuda:N")) << device;
  }
}

TEST(LaunchPlan, EachLearnerNeedsAPortIfTheyAreGiven) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.actors = 0;
  options.learners = 2;
  options.ports.data = 65534;  // And 65535.
  EXPECT_TRUE(PlanLaunch(options, 1).ok());
  options.ports.data = 65535;
  EXPECT_THAT(std::string(PlanLaunch(options, 1).status().message()), HasSubstr("--data-port 65535: no ports"));
}

TEST(LaunchPlan, HeadHasNoActorsAndTheEnvironmentsOfTwoRunners) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.actors = 0;
  const auto plan = PlanLaunch(options, 64);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->actor_runners, IsEmpty());
  EXPECT_EQ(plan->config.rollout().num_envs(), 32u);  // 2 x 16.
  EXPECT_THAT(plan->notes, ElementsAre("at most 2 runners, of all workers together, can work at once (32 environments, "
                                       "16 a runner); more with --envs, e.g. --envs 64"));
}

TEST(LaunchPlan, RefusesWhatCannotRun) {
  const auto message_with = [](const std::string& setting, LaunchOptions options = {}) {
    options.overrides.push_back(setting);
    const auto plan = PlanLaunch(options, 2);
    EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << setting << ": " << plan.status();
    return std::string(plan.status().message());
  };
  EXPECT_THAT(message_with("env.id=HalfCheetah-v6"), HasSubstr("HalfCheetah-v5"));
  EXPECT_THAT(message_with("name=../elsewhere"), HasSubstr("name"));
  EXPECT_THAT(message_with("ppo.lr=.nan"), HasSubstr("lr"));
  EXPECT_THAT(message_with("ppo.learning_rate=1"), HasSubstr("learning_rate"));
  EXPECT_THAT(message_with("seed=1", {.resume = "perhaps"}), HasSubstr("--resume"));
  EXPECT_THAT(message_with("seed=1", {.runners = "many"}), HasSubstr("--runners"));
}

TEST(LaunchPlan, MissingConfigurationFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(PlanLaunch({.config_path = "/nowhere/run.yaml"}, 2).status()));
}

TEST(SplitEvenly, LosesNothingAndDiffersByOne) {
  EXPECT_THAT(SplitEvenly(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(SplitEvenly(2, 2), ElementsAre(1, 1));
  EXPECT_THAT(SplitEvenly(5, 0), IsEmpty());
}

// The flag is named, not the file, and what decides the size in its place.
TEST(LaunchPlan, SizesOfASearchAreNotThoseOfFlags) {
  const ScratchFolder folder;
  LaunchOptions options;
  options.config_path = folder.Write("run.yaml", "env: {id: CartPole-v1}\nars: {top_dirs: 4}\n");
  options.num_envs = 64;
  EXPECT_EQ(PlanLaunch(options, 2).status().message(),
            "--envs 64 cannot be given with ars, whose work is directions; try --set directions.num_dirs=64");
  options.num_envs = 32;  // As many as there are directions.
  options.envs_per_runner = 4;
  EXPECT_EQ(PlanLaunch(options, 2).status().message(),
            "--envs-per-runner 4 cannot be given with ars, whose work is directions; try --set directions.dir_chunk=4");
  options.overrides = {"directions.dir_chunk=4"};
  EXPECT_TRUE(PlanLaunch(options, 2).ok()) << PlanLaunch(options, 2).status();
}

TEST(LaunchPlan, EnvironmentsOfPhasesAreCheckedByTheirLine) {
  const ScratchFolder folder;
  LaunchOptions options;
  options.config_path = folder.Write("run.yaml",
                                     "env: {id: CartPole-v1}\nphases:\n  - until_steps: 1000\n    set:\n"
                                     "      env.mujoco.push_speed: 1\n");
  EXPECT_THAT(std::string(PlanLaunch(options, 2).status().message()), HasSubstr("run.yaml:5:"));
  EXPECT_THAT(std::string(PlanLaunch(options, 2).status().message()), HasSubstr(": phases[0].set: "));
}

TEST(LaunchPlan, SettingsThatNothingReadsAreNoted) {
  LaunchOptions options;
  options.env_id = "CartPole-v1";
  options.overrides = {"directions.num_dirs=8", "model.policy=linear", "model.hidden=[8]"};
  const auto plan = PlanLaunch(options, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(
      plan->notes,
      ElementsAre("note: directions means nothing with ppo and is ignored; ars or es would search over directions",
                  "note: model.hidden means nothing with model.policy linear and is ignored"));
  // A run's own config.yaml has all settings.
  const ScratchFolder folder;
  LaunchOptions again;
  v1::RunConfig config = plan->config;
  config.clear_directions();
  config.mutable_model()->clear_hidden();
  ApplyDefaults(&config);
  again.config_path = folder.Write("config.yaml", ToYaml(config));
  EXPECT_THAT(PlanLaunch(again, 4)->notes, IsEmpty());
  options.overrides = {"directions.num_dirs=8", "es.step_size=1", "model.hidden=[8]"};
  EXPECT_THAT(PlanLaunch(options, 4)->notes, IsEmpty());
  options.overrides = {"model.critic_memory=separate", "model.memory_size=32"};
  EXPECT_THAT(PlanLaunch(options, 4)->notes,
              ElementsAre("note: model.memory_size, model.critic_memory mean nothing with model.memory none and are "
                          "ignored"));
  options.overrides.emplace_back("model.memory=gru");
  EXPECT_THAT(PlanLaunch(options, 4)->notes, IsEmpty());
}

TEST(LaunchPlan, PhasesThatNeverBeginAreNoted) {
  const ScratchFolder folder;
  LaunchOptions options;
  options.config_path =
      folder.Write("run.yaml",
                   "env: {id: CartPole-v1}\nphases:\n  - until_steps: 1000\n    set: {ppo.lr: 1.0e-4}\n"
                   "  - until_steps: 2000\n    set: {ppo.lr: 2.0e-4}\n");
  const auto notes = [&](const std::string& total) {
    options.overrides = {"total_steps=" + total};
    return PlanLaunch(options, 4)->notes;
  };
  EXPECT_THAT(notes("2001"), IsEmpty());
  EXPECT_THAT(notes("2000"), ElementsAre("note: phases: the run ends in phase 2 of 3, because total_steps 2000 is not "
                                         "beyond its until_steps 2000"));
  EXPECT_THAT(notes("500"),
              ElementsAre("note: phases: the run ends in phase 1 of 3, because total_steps 500 is not beyond "
                          "its until_steps 1000"));
}

TEST(ParseRunners, TakesAutoAndPositiveNumbersOnly) {
  EXPECT_EQ(ParseRunners("auto", 3).value(), 3u);
  EXPECT_EQ(ParseRunners("auto", 0).value(), 1u);  // The number of cores may be unknown.
  EXPECT_EQ(ParseRunners("12", 3).value(), 12u);
  for (const char* text : {"0", "-1", "", "1.5", "100000"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRunners(text, 3).status())) << text;
  }
}

TEST(ParseLearners, TakesAutoAndNumbersOnly) {
  EXPECT_EQ(ParseLearners("auto", 1, 3).value(), 3u);
  EXPECT_EQ(ParseLearners("auto", 0, 0).value(), 1u);  // No GPU: one, on the CPU.
  EXPECT_EQ(ParseLearners("2", 1, 8).value(), 2u);
  EXPECT_EQ(ParseLearners("0", 0, 8).value(), 0u);
  for (const char* text : {"0", "-1", "", "two", "100000"}) {
    const auto status = ParseLearners(text, 1, 3).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--learners: got \"")) << text;
  }
}

TEST(AnnounceHost, IsTheHostItselfUnlessThatIsAWildcard) {
  EXPECT_EQ(AnnounceHost("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(AnnounceHost("127.0.0.1"), "127.0.0.1");
  EXPECT_NE(AnnounceHost("0.0.0.0"), "0.0.0.0");
  EXPECT_NE(AnnounceHost("::"), "::");
}

}  // namespace
}  // namespace skein
