// SPDX-License-Identifier: Apache-2.0
#include "base/config/phases.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "base/config/config.h"
#include "base/config/nearest_name.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kThree[] = R"(
env:
  id: QuadrupedStand-v0
  mujoco: {height_range: [0.45, 0.55], push_speed: 0.5}
phases:
  - until_steps: 1e6
    set:
      env.mujoco.height_range: [0.42, 0.52]
      env.mujoco.push_speed: 0
      ppo.lr: 1e-3
  - until_steps: 2000000
    set: {ppo: {entropy_coefficient: 0.25}}
)";

v1::RunConfig Load(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  v1::RunConfig base;
  EXPECT_TRUE(MergeYaml(yaml, "run.yaml", &base).ok()) << MergeYaml(yaml, "run.yaml", &base);
  const auto config = LoadRunConfig("", overrides, 2, base);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : v1::RunConfig();
}

std::string MergeError(const std::string& yaml) {
  v1::RunConfig config;
  return std::string(MergeYaml(yaml, "run.yaml", &config).message());
}

std::string LoadError(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  v1::RunConfig base;
  EXPECT_TRUE(MergeYaml(yaml, "run.yaml", &base).ok()) << MergeYaml(yaml, "run.yaml", &base);
  return std::string(LoadRunConfig("", overrides, 2, base).status().message());
}

TEST(Phases, AreInForceUntilTheirSteps) {
  const v1::RunConfig config = Load(kThree);
  EXPECT_EQ(PhaseAt(config, 0), 0u);
  EXPECT_EQ(PhaseAt(config, 999999), 0u);
  EXPECT_EQ(PhaseAt(config, 1000000), 1u);
  EXPECT_EQ(PhaseAt(config, 1999999), 1u);
  EXPECT_EQ(PhaseAt(config, 2000000), 2u);
  EXPECT_EQ(PhaseAt(config, UINT64_MAX), 2u);
  EXPECT_EQ(PhaseAt(v1::RunConfig(), 5), 0u);
}

TEST(Phases, ReplaceTheRunsOwnSettings) {
  const v1::RunConfig config = Load(kThree);
  const v1::RunConfig first = ConfigOfPhase(config, 0), second = ConfigOfPhase(config, 1),
                      own = ConfigOfPhase(config, 2);
  EXPECT_THAT(first.env().mujoco().height_range(), testing::ElementsAre(0.42, 0.52));
  EXPECT_EQ(first.env().mujoco().push_speed(), 0);
  EXPECT_EQ(first.ppo().lr(), 1e-3);
  EXPECT_EQ(first.ppo().entropy_coefficient(), 0);
  // Not on top of the phase before.
  EXPECT_THAT(second.env().mujoco().height_range(), testing::ElementsAre(0.45, 0.55));
  EXPECT_EQ(second.ppo().lr(), 3e-4);
  EXPECT_EQ(second.ppo().entropy_coefficient(), 0.25);
  v1::RunConfig without = config;
  without.clear_phases();
  EXPECT_TRUE(MessageDifferencer::Equals(own, without));
  EXPECT_TRUE(MessageDifferencer::Equals(ConfigOfPhase(config, 99), without));
}

TEST(Phases, ShareEnvironmentsWhereTheseAreEqual) {
  const v1::RunConfig config = Load(kThree);
  EXPECT_EQ(EnvPhase(config, 0), 0u);
  EXPECT_EQ(EnvPhase(config, 1), 1u);
  EXPECT_EQ(EnvPhase(config, 2), 1u);  // The second changes nothing of the environment.
  EXPECT_EQ(EnvPhase(v1::RunConfig(), 0), 0u);
}

TEST(Phases, AreDescribedByWhatTheySet) {
  const v1::RunConfig config = Load(kThree);
  EXPECT_EQ(DescribePhase(config, 0), "env.mujoco.height_range [0.42, 0.52], env.mujoco.push_speed 0, ppo.lr 0.001");
  EXPECT_EQ(DescribePhase(config, 1), "ppo.entropy_coefficient 0.25");
  EXPECT_EQ(DescribePhase(config, 2), "");
}

TEST(Phases, ReadBackEqualFromYaml) {
  const v1::RunConfig config = Load(kThree);
  v1::RunConfig again;
  ASSERT_TRUE(MergeYaml(ToYaml(config), "again", &again).ok()) << MergeYaml(ToYaml(config), "again", &again);
  EXPECT_TRUE(MessageDifferencer::Equals(again, config)) << ToYaml(config);
  const v1::RunConfig given = Load("", {"phases=[{until_steps: 5, set: {ppo.lr: 0.5}}]"});
  EXPECT_EQ(ConfigOfPhase(given, 0).ppo().lr(), 0.5);
  // A list takes the place of the one before.
  EXPECT_EQ(Load(kThree, {"phases=[{until_steps: 5, set: {}}]"}).phases_size(), 1);
}

TEST(Phases, OutOfOrderAreRefusedByKeyAndLine) {
  EXPECT_EQ(MergeError("seed: 1\nphases:\n  - until_steps: 10\n    set: {ppo.lr: 1}\n  - until_steps: 10\n"),
            "run.yaml:5:18: phases[1].until_steps: must be greater than 10, where the phase before ends, got 10");
  EXPECT_EQ(MergeError("phases:\n  - set: {ppo.lr: 1}\n"), "run.yaml:2:5: phases[0].until_steps is not set");
  EXPECT_THAT(MergeError("phases: [{until_steps: 0}]"), HasSubstr("phases[0].until_steps: must be at least 1"));
  EXPECT_THAT(MergeError("phases: {until_steps: 1}"), HasSubstr("run.yaml:1:9: phases: expected a list"));
  EXPECT_THAT(MergeError("phases: [3]"), HasSubstr("phases[0]: expected until_steps and set"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, steps: 2}]"), HasSubstr("phases[0]: unknown key 'steps'"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, until_steps: 2}]"),
              HasSubstr("phases[0].until_steps is given twice"));
}

TEST(Phases, RefuseSettingsThatCannotChange) {
  EXPECT_THAT(MergeError("phases:\n  - until_steps: 1\n    set:\n      rollout.num_envs: 3\n"),
              StartsWith("run.yaml:4:7: phases[0].set.rollout.num_envs: cannot change during a run"));
  EXPECT_THAT(MergeError("phases:\n  - until_steps: 1\n    set:\n      env:\n        id: CartPole-v1\n"),
              StartsWith("run.yaml:5:9: phases[0].set.env.id: cannot change"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: {phases: []}}]"),
              HasSubstr("phases[0].set.phases: cannot change"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: {ppo.lrr: 1}}]"),
              HasSubstr("phases[0].set: unknown key 'ppo.lrr'; the nearest is 'ppo.lr'"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: {ppo.lr.x: 1}}]"), HasSubstr("unknown key 'ppo.lr.x'"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: {ppo.lr: -1}}]"),
              HasSubstr("phases[0].set.ppo.lr: must be greater than 0, got -1"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: {ppo.lr: 1, ppo: {lr: 2}}}]"),
              HasSubstr("ppo.lr is given twice"));
  EXPECT_THAT(MergeError("phases: [{until_steps: 1, set: 7}]"), HasSubstr("phases[0].set: expected keys and values"));
  v1::RunConfig config;
  EXPECT_THAT(std::string(ApplyOverride("phases.until_steps=3", &config).message()), HasSubstr("unknown key"));
}

TEST(Phases, RefuseWhatContradictsTheRun) {
  EXPECT_THAT(LoadError("phases: [{until_steps: 1, set: {reinforce.lr: 1}}]"),
              HasSubstr("phases[0].set: it sets another algorithm than the run's"));
  EXPECT_THAT(LoadError("phases: [{until_steps: 1, set: {directions.noise_std: 0.1}}]"),
              HasSubstr("phases[0].set.directions: ppo searches over no directions"));
  EXPECT_THAT(LoadError("ppo: {lr_schedule: kl_adaptive}\nphases: [{until_steps: 1, set: {ppo.lr: 1}}]"),
              HasSubstr("phases[0].set.ppo.lr: with ppo.lr_schedule kl_adaptive"));
  EXPECT_THAT(LoadError("env: {id: UavCover-v0}\nsync: {mode: on_device}\n"
                        "phases: [{until_steps: 1, set: {env.uav.step_penalty: 1}}]"),
              HasSubstr("phases[0].set.env: environments on the device cannot change"));
  v1::RunConfig config = Load(kThree);  // As from a message of another program.
  config.mutable_phases(1)->set_until_steps(1000000);
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("phases[1].until_steps: must be greater"));
  config.mutable_phases(1)->clear_until_steps();
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("phases[1].until_steps is not set"));
  config = Load(kThree);
  config.mutable_phases(0)->mutable_set()->mutable_rollout()->set_num_envs(3);
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()),
              HasSubstr("phases[0].set.rollout.num_envs: cannot change"));
  config = Load(kThree);
  config.mutable_phases(0)->mutable_set()->mutable_ppo()->set_lr(-1);
  EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("phases[0].set: ppo.lr must be greater"));
}

// At what the phase sets, not at what the run has of the same name.
TEST(Phases, AreNamedByTheirOwnLine) {
  const std::string path = testing::TempDir() + "/phases_test.yaml";
  const auto error = [&](const std::string& phases) {
    const std::string run = "directions:\n  num_dirs: 8\nars:\n  top_dirs: 4\nphases:\n";
    EXPECT_TRUE(WriteFileSynced(path, run + phases).ok());
    const std::string message(LoadRunConfig(path, {}, 1).status().message());
    return std::string(absl::StripPrefix(message, path));
  };
  EXPECT_EQ(error("  - until_steps: 10\n    set:\n      directions.noise_std: 0.1\n      ars.top_dirs: 9\n"),
            ":9:21: phases[0].set: ars.top_dirs (9) must not exceed directions.num_dirs (8)");
  EXPECT_EQ(error("  - until_steps: 10\n  - until_steps: 20\n    set:\n      ars: {top_dirs: 9}\n"),
            ":9:23: phases[1].set: ars.top_dirs (9) must not exceed directions.num_dirs (8)");
  EXPECT_EQ(error("  - until_steps: 10\n    set:\n      es.step_size: 1\n"),
            ":8:7: phases[0].set: it sets another algorithm than the run's");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace skein
