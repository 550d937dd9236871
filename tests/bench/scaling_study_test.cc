// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_study.h"

#include "base/config/config.h"
#include "bench/scaling_limit.h"
#include "gmock/gmock.h"
#include "tests/bench/scaling_fixture.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;

bool NeverStop() { return false; }

TEST(TrainingOptions, HaveTheConfigurationAndRoomForItsIterations) {
  TrainingSetup setup;
  setup.env_id = "CartPole-v1";
  setup.overrides = {"ppo.epochs=2"};
  setup.steps_per_iteration = 1000;
  const auto options = TrainingOptions(setup, {3, 2}, "somewhere");
  ASSERT_TRUE(options.ok()) << options.status();
  // 1000 / 6 rounds to 167 steps of each environment: 1,002. A minibatch of 4,096 is too large. 1 + 5 iterations are
  // used, one is to spare: 7 x 1,002 = 7,014.
  EXPECT_THAT(
      TrainArguments(*options),
      IsSupersetOf({"train", "--no-eval", "--resume", "never", "--seed", "20227128", "--runners", "3", "--actors", "1",
                    "rollout.num_envs=6", "rollout.envs_per_runner=2", "rollout.steps_per_iteration=1002",
                    "ppo.minibatch_size=1002", "total_steps=7014", "ppo.epochs=2", "somewhere"}));
}

TEST(TrainingOptions, GrowWithTheEnvironmentsWhereStepsOfEachAreGiven) {
  TrainingSetup setup;
  setup.env_id = "CartPole-v1";
  setup.steps_per_env = 64;
  setup.actors = 4;
  const auto options = TrainingOptions(setup, {8, 1}, "somewhere");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->overrides, Contains("rollout.steps_per_iteration=512"));
  EXPECT_EQ(options->actors, 4u);
  EXPECT_EQ(TrainingOptions(setup, {2, 1}, "somewhere")->actors, 2u);  // Not more than runners.
}

TEST(TrainingOptions, OfASearchHaveADirectionForEachEnvironment) {
  TrainingSetup setup;
  setup.recipe = "none";
  setup.env_id = "Latency-v0";
  setup.overrides = {"ars.top_dirs=4", "directions.num_envs=2"};
  setup.steps_per_env = 64;
  setup.actors = 256;
  // 64 env steps of a direction are 2 signs x 2 episodes x 16 steps.
  const auto many = TrainingOptions(setup, {256, 1}, "somewhere");
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(many->actors, 256u);
  EXPECT_THAT(many->overrides, IsSupersetOf({"directions.num_dirs=256", "directions.dir_chunk=1",
                                             "directions.episode_length=16", "ars.top_dirs=4"}));
  const auto few = TrainingOptions(setup, {1, 2}, "somewhere");
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(few->overrides, IsSupersetOf({"directions.num_dirs=2", "directions.dir_chunk=2", "ars.top_dirs=2"}));
  setup.overrides = {"es.step_size=0.01"};
  setup.actors = 1;
  setup.steps_per_env = 0;
  setup.steps_per_iteration = 1000;
  // 1000 / (2 x 3) rounds to 167 steps: 1,002 of 1 + 5 iterations and one to spare.
  const auto es = TrainingOptions(setup, {3, 1}, "somewhere");
  ASSERT_TRUE(es.ok()) << es.status();
  EXPECT_THAT(es->overrides, IsSupersetOf({"directions.episode_length=167", "total_steps=7014"}));
}

TEST(TrainingOptions, AreRefusedBeforeAnythingStarts) {
  TrainingSetup setup;
  setup.env_id = "HalfCheetah-v6";
  EXPECT_TRUE(absl::IsInvalidArgument(TrainingOptions(setup, {1, 1}, "x").status()));
  setup.env_id = "CartPole-v1";
  setup.overrides = {"ppo.learning_rate=1"};
  EXPECT_TRUE(absl::IsInvalidArgument(TrainingOptions(setup, {1, 1}, "x").status()));
  setup.overrides.clear();
  setup.config_path = "/nowhere.yaml";
  EXPECT_TRUE(absl::IsNotFound(TrainingOptions(setup, {1, 1}, "x").status()));
}

TEST(MeasureTraining, SaysWhatIsMissingAndHowATrainingEnded) {
  const ScratchFolder folder;
  TrainingSetup setup;
  setup.env_id = "CartPole-v1";
  setup.program_folder = folder.path();
  EXPECT_TRUE(absl::IsUnavailable(MeasureTraining(setup, {1, 1}, folder.path(), nullptr, NeverStop).status()));

  folder.WriteScript("skein", "echo 'skein train: the disk is on fire' >&2; exit 70");
  const auto failed = MeasureTraining(setup, {2, 1}, folder.path(), nullptr, NeverStop);
  EXPECT_TRUE(absl::IsInternal(failed.status())) << failed.status();
  EXPECT_THAT(failed.status().message(), AllOf(HasSubstr("2x1: the training ended with code 70"), HasSubstr("on fire"),
                                               HasSubstr("run-2x1/skein.log")));
}

TEST(MeasureTraining, EndsTheTrainingWhenItIsStopped) {
  const ScratchFolder folder;
  TrainingSetup setup;
  setup.env_id = "CartPole-v1";
  setup.program_folder = folder.path();
  folder.WriteScript("skein", "exec sleep 60");
  EXPECT_TRUE(absl::IsCancelled(MeasureTraining(setup, {1, 1}, folder.path(), nullptr, [] { return true; }).status()));
}

TEST(LatencyLimit, IsThatOfTheSleepingRunners) {
  v1::RunConfig config;
  ApplyDefaults(&config);
  v1::LatencyConfig latency = config.env().latency();
  latency.set_step_ms(10);
  EXPECT_DOUBLE_EQ(*LatencyLimit(latency, {16, 1}).env_steps_per_second, 1600);
  EXPECT_DOUBLE_EQ(*LatencyLimit(latency, {2, 8}).env_steps_per_second, 200);
  // One of four is ten times slower: (3 x 10 + 100) / 4 = 32.5 ms a step.
  latency.set_slow_envs(1);
  latency.set_slow_factor(10);
  EXPECT_DOUBLE_EQ(*LatencyLimit(latency, {4, 1}).env_steps_per_second, 4 * 1000 / 32.5);
  latency.set_step_ms(0);
  EXPECT_FALSE(LatencyLimit(latency, {4, 1}).env_steps_per_second);
}

TEST(LimitFinder, TakesTheBareLoopsRateOrSaysWhyNot) {
  const ScratchFolder folder;
  v1::RunConfig config;
  ApplyDefaults(&config);
  LimitFinder missing(folder.path(), config, 2);
  const PhysicalLimit none = missing.Find({1, 1}, folder.path(), NeverStop);
  EXPECT_FALSE(none.env_steps_per_second);
  EXPECT_THAT(none.how, HasSubstr("skein-bench"));

  // Its arguments are: env --env ID --threads N --json FILE.
  folder.WriteScript("skein-bench",
                     "echo \"{\\\"summary\\\": {\\\"limit_env_steps_per_second\\\": ${5}000}}\" > \"$7\"");
  LimitFinder limits(folder.path(), config, 2);
  EXPECT_EQ(limits.Find({1, 8}, folder.path(), NeverStop).env_steps_per_second, 1000);
  EXPECT_EQ(limits.Find({8, 1}, folder.path(), NeverStop).env_steps_per_second, 2000);  // No more than cores.
  folder.WriteScript("skein-bench", "exit 65");
  EXPECT_EQ(limits.Find({2, 1}, folder.path(), NeverStop).env_steps_per_second, 2000);  // Measured already.
  LimitFinder failing(folder.path(), config, 2);
  EXPECT_THAT(failing.Find({1, 1}, folder.path(), NeverStop).how, HasSubstr("ended with code 65"));
  folder.WriteScript("skein-bench", "echo '[]' > \"$7\"");
  EXPECT_THAT(LimitFinder(folder.path(), config, 2).Find({1, 1}, folder.path(), NeverStop).how,
              HasSubstr("wrote no limit"));
}

TEST(LoadResults, TakesUpAStudyThatWasInterrupted) {
  const ScratchFolder folder;
  const ScalingResults sample = SampleResults();
  const std::string path = folder.Write("results.json", ToJson(sample, Analyze(sample)).dump());
  ScalingResults results;
  results.machine = sample.machine;
  results.config = sample.config;
  results.config["configurations"].push_back("8x8");  // More than before is allowed.
  const absl::Status loaded = LoadResults(path, &results);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(results.rows.size(), 4u);
  EXPECT_EQ(ToJson(results.rows[3]), ToJson(sample.rows[3]));
  EXPECT_EQ(results.limits["2x2"].env_steps_per_second, 2000);
  EXPECT_FALSE(results.limits["2x1"].env_steps_per_second);
}

TEST(LoadResults, RefusesAnotherStudyAnotherMachineAndDamage) {
  const ScratchFolder folder;
  const ScalingResults sample = SampleResults();
  const std::string path = folder.Write("results.json", ToJson(sample, Analyze(sample)).dump());
  ScalingResults other = sample;
  other.config["seed"] = 1;
  EXPECT_THAT(LoadResults(path, &other).message(), HasSubstr("another 'seed'"));
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadResults(path, &other)));
  other = sample;
  other.machine["cores"] = 64;
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadResults(path, &other)));
  other = sample;
  EXPECT_TRUE(absl::IsDataLoss(LoadResults(folder.Write("damaged.json", "{\"config\""), &other)));
  EXPECT_TRUE(absl::IsNotFound(LoadResults(folder.path() + "/none.json", &other)));
}

TEST(RunScalingStudy, WritesOverNoResultsUnlessItGoesOn) {
  const ScratchFolder folder;
  folder.Write("results.json", "{}");
  ScalingOptions options;
  options.setup.env_id = "CartPole-v1";
  options.grid = {{1, 1}};
  options.out = folder.path();
  const auto say = [](const std::string&) {};
  EXPECT_TRUE(absl::IsAlreadyExists(RunScalingStudy(options, NeverStop, say).status()));
  options.resume = true;
  EXPECT_TRUE(absl::IsDataLoss(RunScalingStudy(options, NeverStop, say).status()));
  options.setup.env_id = "CartPole-v9";
  EXPECT_TRUE(absl::IsInvalidArgument(RunScalingStudy(options, NeverStop, say).status()));
}

}  // namespace
}  // namespace skein
