// SPDX-License-Identifier: Apache-2.0
#include "sweep/space_file.h"

#include "base/config/config.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "sweep/known_metrics.h"
#include "sweep/settings.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::RunConfig Base() {
  v1::RunConfig base;
  EXPECT_TRUE(ApplyOverride("env.id=CartPole-v1", &base).ok());
  ApplyDefaults(&base);
  return base;
}

const std::vector<std::string>& Metrics() {
  static const auto* const metrics = new std::vector<std::string>{"episode_return_mean", "eval.return_mean"};
  return *metrics;
}

absl::StatusOr<SweepFile> Read(const std::string& text) { return ReadSweepFile(text, "s.yaml", Base(), Metrics()); }

std::string Error(const std::string& text) {
  const auto file = Read(text);
  EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << text << file.status();
  return std::string(file.status().message());
}

TEST(SpaceFile, HasEachKindOfParameter) {
  const auto file = Read(R"(
max_trials: 20
space:
  ppo.lr: {log_uniform: [1e-4, 1e-2]}
  ppo.gamma: {uniform: [0.9, 1]}
  ppo.epochs: {integer: [2, 10], step: 2}
  model.hidden: [[64, 64], [128]]
  ppo.lr_schedule: {choice: [linear, kl_adaptive]}
  ppo.kl_target: {log_uniform: [1e-3, 1e-1], when: {ppo.lr_schedule: kl_adaptive}}
constraints:
  - ppo.epochs * 2 <= 16
)");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.name(), "s");
  EXPECT_EQ(file->config.seeds_per_trial(), 1u);
  EXPECT_EQ(file->config.scheduler().kind(), v1::SWEEP_SCHEDULE_NONE);
  const std::vector<Parameter>& all = file->space.parameters;
  ASSERT_EQ(all.size(), 6u);
  EXPECT_TRUE(all[0].log);
  EXPECT_EQ(all[2].step, 2);
  EXPECT_THAT(all[3].choices, ElementsAre("[64, 64]", "[128]"));
  // The second choice of the parameter at index 4.
  EXPECT_EQ(all[5].when->parameter, 4u);
  EXPECT_THAT(all[5].when->values, ElementsAre(1.0));
  const Point point = {1e-3, 0.99, 4.0, 1.0, 0.0, std::nullopt};
  EXPECT_THAT(Overrides(file->space, point), ElementsAre("ppo.lr=0.001", "ppo.gamma=0.99", "ppo.epochs=4",
                                                         "model.hidden=[128]", "ppo.lr_schedule=linear"));
  EXPECT_TRUE(MeetsConstraints(file->space, point, Base()));
  EXPECT_FALSE(MeetsConstraints(file->space, {1e-3, 0.99, 10.0, 1.0, 0.0, std::nullopt}, Base()));
}

TEST(SpaceFile, NamesTheNearestSettingWithItsPlace) {
  EXPECT_THAT(Error("max_trials: 1\nspace:\n  ppo.learning_rate: [1e-3]\n"),
              HasSubstr("s.yaml:3:3: unknown key 'ppo.learning_rate'; the nearest is 'ppo.lr'"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo: [1]}\n"), HasSubstr("s.yaml:2:9: 'ppo' is a section"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ars.step_size: [1]}\n"),
              HasSubstr("s.yaml:2:9: ars.step_size: 'ars' is given"));
  EXPECT_THAT(Error("max_trails: 1\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:1:1: unknown key 'max_trails'; the nearest is 'max_trials'"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {seed: [1, 2]}\n"), HasSubstr("s.yaml:2:9: seed: a sweep cannot vary it"));
}

TEST(SpaceFile, RefusesValuesThatTheSettingRefuses) {
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.lr: [1e-3, 11]}\n"),
              HasSubstr("s.yaml:2:24: ppo.lr: must be at most 10, got 11"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.gamma: {uniform: [0.9, 1.5]}}\n"),
              HasSubstr("s.yaml:2:36: ppo.gamma: must be at most 1, got 1.5"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.epochs: {integer: [1, 2.5]}}\n"),
              HasSubstr("s.yaml:2:35: ppo.epochs: expected a whole number"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.gamma: {uniform: [1, 0.9]}}\n"),
              HasSubstr("s.yaml:2:30: ppo.gamma: the lower bound 1"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.lr: {log_uniform: [1e-3, 1e-2], choice: [1]}}\n"),
              HasSubstr("expected one of"));
}

TEST(SpaceFile, RefusesWhatASamplerCannotDo) {
  const std::string conditional =
      "space:\n  ppo.lr_schedule: [linear, kl_adaptive]\n"
      "  ppo.kl_target: {log_uniform: [1e-3, 1e-1], when: {ppo.lr_schedule: kl_adaptive}}\n";
  EXPECT_THAT(Error("sampler: {kind: cmaes}\nmax_trials: 3\n" + conditional),
              HasSubstr("s.yaml:5:3: ppo.kl_target: sampler cmaes cannot do a setting with a condition"));
  EXPECT_THAT(Error("sampler: {kind: grid}\n" + conditional),
              HasSubstr("s.yaml:4:3: ppo.kl_target: a grid needs points"));
  EXPECT_THAT(Error("space: {ppo.lr: [1]}\n"), HasSubstr("max_trials: sampler random needs a number"));
  EXPECT_THAT(Error("sampler: {kind: tpe}\nmax_trials: 9\nscheduler: {kind: population}\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:1:17: sampler.kind: tpe does not know where copies come from"));
}

TEST(SpaceFile, TakesAMetricOfACallbackWhereThereIsOne) {
  const std::string text = "max_trials: 1\nmetric: callback.to_go\nspace: {ppo.lr: [1]}\n";
  EXPECT_THAT(Error(text), HasSubstr("s.yaml:2:9: metric: callback.to_go needs a callback: callbacks.python is empty"));
  v1::RunConfig base = Base();
  ASSERT_TRUE(ApplyOverride("callbacks.python=watch:Watch", &base).ok());
  EXPECT_EQ(ReadSweepFile(text, "s.yaml", base, Metrics()).status(), absl::OkStatus());
}

TEST(SpaceFile, TheShippedOnesFitTheirConfigurations) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"configs/sweeps/cartpole_grid.yaml", "configs/cartpole_ppo.yaml"},
      {"configs/sweeps/half_cheetah_ppo.yaml", "configs/half_cheetah_ppo.yaml"}};
  for (const auto& [space, config] : all) {
    const auto base = LoadRunConfig(config, {"callbacks.python=skein_env.steps_to:StepsTo?target=5000"}, 1);
    ASSERT_TRUE(base.ok()) << base.status();
    const auto file = ReadSweepFile(ReadFile(space).value(), space, *base, KnownMetrics(*base));
    EXPECT_EQ(file.status(), absl::OkStatus());
  }
}

TEST(SpaceFile, RefusesOtherContradictions) {
  EXPECT_THAT(
      Error("max_trials: 1\nmetric: episode_retrun_mean\nspace: {ppo.lr: [1]}\n"),
      HasSubstr("s.yaml:2:9: metric: trainings have no 'episode_retrun_mean'; the nearest is 'episode_return_mean'"));
  EXPECT_THAT(Error("max_trials: 1\nmetric: eval.return_mean\nscheduler: {kind: asha}\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:2:9: metric: eval.return_mean is known at the end only"));
  EXPECT_THAT(Error("max_trials: 1\ntest_seed: 995\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:2:12: test_seed: seeds 995 to 1004"));
  EXPECT_THAT(Error("max_trials: 1\nspace:\n  ppo.lr: {choice: [1], when: {ppo.clip: 1}}\n"),
              HasSubstr("s.yaml:3:32: ppo.lr.when: 'ppo.clip' is not in the space before it"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.lr: [1]}\nconstraints:\n  - ppo.lr <= ppo.epoch\n"),
              HasSubstr("s.yaml:4:15: constraints: unknown key 'ppo.epoch'; the nearest is 'ppo.epochs'"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.lr: [1]}\nconstraints:\n  - ppo.lr + 1\n"),
              HasSubstr("s.yaml:4:15: constraints: expected <"));
  EXPECT_THAT(Error("max_trials: 1\nresources: {memory: 2}\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:2:12: resources.memory: got '2', want at least 64MiB"));
  EXPECT_THAT(Error("max_trials: 1\nresources: {cpu: 2}\nspace: {ppo.lr: [1]}\n"),
              HasSubstr("s.yaml:2:13: unknown key 'cpu'; the nearest is 'cpus'"));
  EXPECT_THAT(Error("max_trials: 1\n"), HasSubstr("'space' is missing"));
}

TEST(SpaceFile, IsAnotherOneWithAnotherSpaceButNotWithMoreTrials) {
  const std::string space = "space: {ppo.lr: [1, 2]}\n";
  const auto one = Read("max_trials: 3\n" + space), more = Read("max_trials: 9\n" + space);
  const auto other = Read("max_trials: 3\nspace: {ppo.lr: [1, 3]}\n");
  ASSERT_TRUE(one.ok() && more.ok() && other.ok());
  EXPECT_EQ(Identity(*one, Base()), Identity(*more, Base()));
  EXPECT_NE(Identity(*one, Base()), Identity(*other, Base()));
  // Shares of the machine do not change what is computed, what is minimized does.
  v1::RunConfig shared = Base();
  ASSERT_TRUE(ApplyOverride("resources.learner.cpus=0.5", &shared).ok());
  EXPECT_EQ(Identity(*one, Base()), Identity(*one, shared));
  EXPECT_NE(Identity(*one, Base()), Identity(*Read("max_trials: 3\ngoal: minimize\n" + space), Base()));
}

TEST(SpaceFile, SharesAreNoPartOfWhatAJournalIsFor) {
  const std::string plain = "max_trials: 1\nspace: {ppo.lr: [1]}\n";
  const auto without = Read(plain), with = Read("resources: {cpus: 0.5, gpus: 0.25}\n" + plain);
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_FALSE(without->config.resources().has_cpus());
  EXPECT_EQ(with->config.resources().gpus(), 0.25);
  EXPECT_EQ(Identity(*without, Base()), Identity(*with, Base()));
}

TEST(SpaceFile, AnEvaluationNeedsEpisodes) {
  v1::RunConfig base = Base();
  ASSERT_TRUE(ApplyOverride("eval.episodes=0", &base).ok());
  const auto file =
      ReadSweepFile("max_trials: 1\nmetric: eval.return_mean\nspace: {ppo.lr: [1]}\n", "s.yaml", base, Metrics());
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("s.yaml:2:9: metric: eval.return_mean needs eval.episodes of more than 0"));
}

TEST(SpaceFile, RefusesConstraintsThatCompareTextsBySize) {
  const std::string space = "max_trials: 1\nspace:\n  ppo.lr_schedule: [linear, kl_adaptive]\n  ppo.epochs: [1, 2]\n";
  EXPECT_THAT(Error(space + "constraints: [ppo.lr_schedule > 5]\n"),
              HasSubstr("s.yaml:5:15: constraints: 'ppo.lr_schedule' is no number, in 'ppo.lr_schedule > 5'"));
  EXPECT_THAT(Error(space + "constraints: [2 * env.id == 5]\n"), HasSubstr("'env.id' is no number"));
  EXPECT_THAT(Error(space + "constraints: [ppo.epochs <= many]\n"), HasSubstr("'many' is no number"));
  for (const char* good : {"ppo.lr_schedule != linear", "ppo.epochs * 2 <= ppo.minibatch_size", "ppo.epochs < 2"}) {
    EXPECT_TRUE(Read(space + "constraints: [" + good + "]\n").ok()) << good;
  }
}

TEST(SpaceFile, RefusesFractionsWhereASettingTakesNone) {
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.epochs: {uniform: [1, 4]}}\n"),
              HasSubstr("s.yaml:2:21: ppo.epochs: it does not take fractions; write {integer: [low, high]}"));
  EXPECT_THAT(Error("max_trials: 1\nspace: {ppo.epochs: {log_uniform: [1, 4]}}\n"), HasSubstr("fractions"));
  EXPECT_TRUE(Read("max_trials: 1\nspace: {ppo.lr: {uniform: [1e-4, 1]}}\n").ok());
}

TEST(SpaceFile, KnowsSamplersWithoutConditionsByEachOfTheirNames) {
  for (const char* name : {"gp", "GPSampler", "cmaes", "cma_es", "CMA-ES", "CmaEsSampler"}) {
    EXPECT_THAT(Error(std::string("max_trials: 1\nsampler: {kind: ") + name +
                      "}\nspace:\n  ppo.lr_schedule: [linear, kl_adaptive]\n"
                      "  ppo.kl_target: {uniform: [0.01, 1], when: {ppo.lr_schedule: kl_adaptive}}\n"),
                HasSubstr("s.yaml:5:3: ppo.kl_target: sampler "));
  }
}

TEST(SpaceFile, NamesAFolderAmongTheRuns) {
  EXPECT_THAT(Error("name: ..\nmax_trials: 1\nspace: {ppo.lr: [1e-3]}\n"),
              HasSubstr("s.yaml:1:7: name: '..' is no name of a folder"));
  for (const std::string& bad : {std::string("../x"), std::string("a b"), std::string("-x"), std::string(201, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckSweepName(bad))) << bad;
  }
  EXPECT_TRUE(CheckSweepName("half_cheetah-2.1").ok());
}

TEST(Constraint, FollowsTheOrderOfOperations) {
  const auto holds = [](const std::string& text) {
    size_t column = 0;
    const auto constraint = Constraint::Parse(text, &column);
    EXPECT_TRUE(constraint.ok()) << constraint.status();
    return constraint->Holds([](const std::string& path) { return path == "ppo.epochs" ? "5" : "linear"; });
  };
  EXPECT_TRUE(holds("2 + 3 * 4 == 14"));
  EXPECT_TRUE(holds("(2 + 3) * 4 == 20"));
  EXPECT_TRUE(holds("10 - 4 - 3 == 3"));
  EXPECT_TRUE(holds("ppo.epochs % 2 == 1"));
  EXPECT_TRUE(holds("ppo.epochs / 2 >= 2.5"));
  EXPECT_TRUE(holds("1e-3 < 1e-2"));
  EXPECT_TRUE(holds("ppo.lr_schedule == linear"));
  EXPECT_FALSE(holds("ppo.lr_schedule != linear"));
  EXPECT_FALSE(holds("ppo.lr_schedule < 3"));
  EXPECT_FALSE(holds("1 / 0 < 3"));
}

}  // namespace
}  // namespace skein
