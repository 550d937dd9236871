// SPDX-License-Identifier: Apache-2.0
#include "base/config/direction_rules.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/config/phases.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string LoadError(const std::vector<std::string>& overrides) {
  return std::string(LoadRunConfig("", overrides, 1).status().message());
}

TEST(DirectionRules, SettingsMustFitTogether) {
  EXPECT_EQ(LoadError({"ars.top_dirs=33"}), "ars.top_dirs (33) must not exceed directions.num_dirs (32)");
  EXPECT_EQ(LoadError({"ars.top_dirs=32", "directions.dir_chunk=33"}),
            "directions.dir_chunk (33) must not exceed directions.num_dirs (32)");
  EXPECT_EQ(LoadError({"es.step_size=1", "directions.dir_chunk=5"}),
            "directions.dir_chunk (5) must divide directions.num_dirs (32)");
  EXPECT_EQ(LoadError({"es.step_size=1", "directions.num_dirs=1048576", "directions.num_envs=4096"}),
            "directions.num_envs (4096) times directions.num_dirs (1048576) must be less than 2^32");
  EXPECT_EQ(LoadError({"ars.top_dirs=1", "rollout.num_envs=4"}),
            "rollout.num_envs (4) cannot be set with ars: it follows from directions.num_dirs");
  EXPECT_EQ(LoadError({"ars.top_dirs=1", "sync.mode=async"}),
            "sync.mode must be on_policy or on_device with ars, which compares returns of one policy's perturbations");
}

// What plans and grants work counts directions where it counts environments otherwise.
TEST(DirectionRules, TheySayTheSizesOfTheWork) {
  const auto config = LoadRunConfig("", {"ars.top_dirs=4", "directions.num_dirs=12", "directions.dir_chunk=3"}, 7);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rollout().num_envs(), 12u);
  EXPECT_EQ(config->rollout().envs_per_runner(), 3u);
  EXPECT_EQ(config->rollout().steps_per_iteration(), 12u);
  // Read back from a run's folder.
  v1::RunConfig again;
  ASSERT_TRUE(MergeYaml(ToYaml(*config), "config.yaml", &again).ok());
  EXPECT_EQ(LoadRunConfig("", {}, 7, again)->rollout().num_envs(), 12u);
  EXPECT_EQ(LoadRunConfig("", {"es.step_size=1", "directions.dir_chunk=0"}, 7)->rollout().envs_per_runner(), 32u);
}

// On a device all directions are played at once unless the user wants fewer; nothing is cut into work orders.
TEST(DirectionRules, OnADeviceAllAreOneChunkUnlessAnotherIsGiven) {
  const auto all = LoadRunConfig("", {"ars.top_dirs=4", "sync.mode=on_device"}, 7);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->directions().dir_chunk(), 0u);
  EXPECT_EQ(all->rollout().num_envs(), 32u);
  EXPECT_EQ(all->rollout().envs_per_runner(), 1u);
  const auto some = LoadRunConfig("", {"es.step_size=1", "sync.mode=on_device", "directions.dir_chunk=8"}, 7);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->directions().dir_chunk(), 8u);
}

// Of several settings, the first that is in the file or on the command line.
TEST(DirectionRules, ErrorsHaveThePlaceOfTheMistake) {
  const std::string path = testing::TempDir() + "/direction_rules_test.yaml";
  ASSERT_TRUE(WriteFileSynced(path, "directions:\n  num_dirs: 8\nars:\n  top_dirs: 9\n").ok());
  EXPECT_EQ(LoadRunConfig(path, {}, 1).status().message(),
            path + ":4:13: ars.top_dirs (9) must not exceed directions.num_dirs (8)");
  EXPECT_THAT(std::string(LoadRunConfig(path, {"ars.top_dirs=10", "directions.dir_chunk=3"}, 1).status().message()),
              StartsWith("--set directions.dir_chunk=3: directions.dir_chunk (3) must divide directions.num_dirs (8)"));
  EXPECT_EQ(LoadRunConfig(path, {"directions.num_dirs=4"}, 1).status().message(),
            path + ":4:13: ars.top_dirs (9) must not exceed directions.num_dirs (4)");
  std::filesystem::remove(path);
}

TEST(DirectionRules, EpisodesEndByTheShorterLimit) {
  v1::RunConfig config;
  v1::DirectionsConfig& own = *config.mutable_directions();
  EXPECT_EQ(*MostEpisodeSteps(config, 1000), 1000u);
  own.set_episode_length(200);
  EXPECT_EQ(*MostEpisodeSteps(config, 1000), 200u);
  EXPECT_EQ(*MostEpisodeSteps(config, 100), 100u);
  EXPECT_EQ(*MostEpisodeSteps(config, 0), 200u);
  own.set_episode_length(0);
  EXPECT_THAT(std::string(MostEpisodeSteps(config, 0).status().message()),
              HasSubstr("directions.episode_length must be set"));
}

TEST(DirectionRules, ThePhaseWithTheLongestEpisodesIsTheLimit) {
  v1::RunConfig config;
  v1::DirectionsConfig& own = *config.mutable_directions();
  own.set_episode_length(200);
  v1::PhaseConfig& phase = *config.add_phases();
  v1::DirectionsConfig& of_phase = *phase.mutable_set()->mutable_directions();
  of_phase.set_episode_length(50);
  EXPECT_EQ(*MostEpisodeSteps(config, 1000), 200u);
  of_phase.set_episode_length(300);
  EXPECT_EQ(*MostEpisodeSteps(config, 1000), 300u);
  EXPECT_EQ(*MostEpisodeSteps(config, 250), 250u);
  EXPECT_EQ(*MostEpisodeSteps(config, 0), 300u);
  own.clear_episode_length();
  EXPECT_EQ(*MostEpisodeSteps(config, 1000), 1000u);
  EXPECT_FALSE(MostEpisodeSteps(config, 0).ok());
  EXPECT_EQ(DirectionSettingsAt(ConfigOfPhase(config, 0).directions(), 0).EpisodeSteps(1000), 300u);
  EXPECT_EQ(DirectionSettingsAt(ConfigOfPhase(config, 0).directions(), 0).EpisodeSteps(250), 250u);
  EXPECT_EQ(DirectionSettingsAt(ConfigOfPhase(config, 1).directions(), 0).EpisodeSteps(1000), 1000u);
}

TEST(DirectionRules, ALinearScheduleFallsToNothing) {
  v1::DirectionsConfig config;
  config.set_noise_std(0.5);
  EXPECT_DOUBLE_EQ(NoiseStd(config, 0.75), 0.5);
  config.set_noise_schedule(v1::SCHEDULE_LINEAR);
  EXPECT_DOUBLE_EQ(NoiseStd(config, 0.75), 0.125);
  EXPECT_DOUBLE_EQ(NoiseStd(config, 1.01), 0);
}

}  // namespace
}  // namespace skein
