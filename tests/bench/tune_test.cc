// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config.h"
#include "bench/tune_run.h"
#include "bench/tune_space.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

v1::RunConfig Config(const std::vector<std::string>& overrides) {
  auto config = ReadRunConfig("", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

// "2x16": two runners of 16 environments.
std::string Name(const TuneSettings& settings) {
  const auto value = [&](const std::string& name) {
    const auto at = std::find_if(settings.begin(), settings.end(), [&](const auto& one) { return one.first == name; });
    return at == settings.end() ? 0 : at->second;
  };
  return absl::StrCat(value("runners"), "x", value("rollout.envs_per_runner"));
}

std::vector<std::string> Tried(const TuneSearch& search) {
  std::vector<std::string> names;
  for (const TuneTrial& trial : search.trials) names.push_back(Name(trial.settings));
  return names;
}

// A node that makes `rate(settings)` env-steps/s.
MeasureTrial Node(const std::function<double(const TuneSettings&)>& rate) {
  return [rate](const TuneSettings& settings) -> absl::StatusOr<TuneTrial> {
    return TuneTrial{.env_steps_per_second = rate(settings), .cpu = 0.5};
  };
}

// Of runs with actors: a node that makes rate(runners, environments of each).
absl::StatusOr<TuneSearch> SearchActors(uint32_t cores, uint32_t envs, uint32_t steps,
                                        const std::function<double(double runners, double envs)>& rate) {
  const auto space = MakeTuneSpace(
      Config({absl::StrCat("rollout.envs_per_runner=", envs), absl::StrCat("rollout.steps_per_iteration=", steps)}),
      cores);
  if (!space.ok()) return space.status();
  return SearchFastest(*space, Node([&rate](const TuneSettings& settings) {
    EXPECT_EQ(settings[1].second, settings[0].second * settings[2].second);
    return rate(static_cast<double>(settings[0].second), static_cast<double>(settings[2].second));
  }));
}

TEST(Tune, StaysWhereNothingIsFaster) {
  // As fast with anything from 16 environments and two runners on.
  const auto search = SearchActors(
      2, 16, 16384, [](double runners, double envs) { return std::min(runners, 2.0) * std::min(envs, 16.0); });
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(Name(search->best.settings), "2x16");
  EXPECT_THAT(Tried(*search), ElementsAre("2x16", "2x64", "2x4", "4x16", "1x16"));
}

TEST(Tune, ClimbsToMoreRunnersWhereStepsSleep) {
  // 100 steps a second of each runner up to 64, whatever its environments.
  const auto search =
      SearchActors(2, 16, 16384, [](double runners, double) { return 100.0 * std::min(runners, 64.0); });
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(Name(search->best.settings), "64x1");  // One environment does as well as 16.
  EXPECT_EQ(Tried(*search).back(), "128x1");
}

TEST(Tune, TakesMoreEnvironmentsWhereThePolicyIsDear) {
  // Each batch costs as much as 20 steps.
  const auto search = SearchActors(
      2, 4, 16384, [](double runners, double envs) { return 1000.0 * std::min(runners, 2.0) * envs / (20.0 + envs); });
  ASSERT_TRUE(search.ok()) << search.status();
  // 256 environments make 93 % of the most, 64 make 76 %; more than 256 are not tried.
  EXPECT_EQ(Name(search->best.settings), "2x256");
}

TEST(Tune, TakesFewerRunnersThatAreAsFast) {
  const auto search = SearchActors(4, 16, 16384, [](double, double) { return 1000.0; });
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(Name(search->best.settings), "1x1");
}

TEST(Tune, TriesOnlyWhatDividesAnIteration) {
  const auto search = SearchActors(3, 16, 1000, [](double runners, double envs) {
    EXPECT_EQ(1000 % static_cast<int>(runners * envs), 0) << runners << "x" << envs;
    return runners * envs;
  });
  ASSERT_TRUE(search.ok()) << search.status();
}

TEST(Tune, PassesAFailureOfTheFirstAndAStopOn) {
  const TuneSpace space = *MakeTuneSpace(Config({}), 2);
  const auto failed = SearchFastest(
      space, [](const TuneSettings&) -> absl::StatusOr<TuneTrial> { return absl::CancelledError("stopped"); });
  EXPECT_TRUE(absl::IsCancelled(failed.status()));
  int trials = 0;
  const auto stopped = SearchFastest(space, [&trials](const TuneSettings&) -> absl::StatusOr<TuneTrial> {
    if (++trials == 1) return TuneTrial{.env_steps_per_second = 1};
    return absl::CancelledError("stopped");
  });
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
  EXPECT_EQ(SearchFastest(
                space, [](const TuneSettings&) -> absl::StatusOr<TuneTrial> { return absl::InternalError("broken"); })
                .status(),
            absl::InternalError("broken"));
}

// Worlds until memory does not suffice: that one failed is not the end.
TEST(Tune, WhatFailsOnTheWayIsNotedAndNotChosen) {
  const auto space = MakeTuneSpace(Config({"sync.mode=on_device", "env.id=UavNavigate-v0", "rollout.num_envs=512",
                                           "rollout.steps_per_iteration=65536"}),
                                   2);
  ASSERT_TRUE(space.ok()) << space.status();
  const auto search = SearchFastest(*space, [](const TuneSettings& settings) -> absl::StatusOr<TuneTrial> {
    EXPECT_EQ(settings[0].first, "rollout.num_envs");
    if (settings[0].second > 2048) return absl::ResourceExhaustedError("out of memory");
    return TuneTrial{.env_steps_per_second = static_cast<double>(settings[0].second)};
  });
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->best.settings[0].second, 2048u);
  EXPECT_THAT(FormatTuneTable(*search), HasSubstr("4096               1  failed: out of memory\n"));
}

TEST(Tune, DirectionsOfActorsHaveAWorkOrderForEachRunner) {
  const auto space = MakeTuneSpace(Config({"ars.top_dirs=4", "directions.num_dirs=8", "directions.dir_chunk=2"}), 2);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<std::string> tried;
  // Messages cost something up to four directions of an order; eight cores.
  const auto search = SearchFastest(*space, Node([&tried](const TuneSettings& settings) {
    EXPECT_EQ(settings[0].first, "runners");
    EXPECT_EQ(settings[1].first, "directions.num_dirs");
    EXPECT_EQ(settings[2].first, "directions.dir_chunk");
    const auto runners = static_cast<double>(settings[0].second), dirs = static_cast<double>(settings[1].second),
               chunk = static_cast<double>(settings[2].second);
    EXPECT_GE(dirs / chunk, runners);
    tried.push_back(absl::StrCat(runners, "/", dirs, "/", chunk));
    return 100 * std::min(runners, 8.0) * std::min(chunk, 4.0);
  }));
  ASSERT_TRUE(search.ok()) << search.status();
  // Four of an order are faster than two; then two orders of eight directions are enough for two runners only.
  EXPECT_THAT(tried, ElementsAre("2/8/2", "2/8/4", "1/8/4", "2/16/4"));
  EXPECT_THAT(space->learned, ElementsAre("directions.num_dirs"));
  EXPECT_EQ(AsFlags(search->best.settings), "--runners 2 --set directions.num_dirs=8 --set directions.dir_chunk=4");
}

TEST(Tune, DirectionsOnADeviceAreWorldsDirectionsAndPartsOfThem) {
  const auto space = MakeTuneSpace(Config({"es.step_size=1", "sync.mode=on_device", "directions.num_dirs=8"}), 2);
  ASSERT_TRUE(space.ok()) << space.status();
  // Any number of worlds up to 64, fastest in two parts.
  const auto search = SearchFastest(*space, Node([](const TuneSettings& settings) {
    const auto worlds = static_cast<double>(settings[0].second), dirs = static_cast<double>(settings[1].second);
    return std::min(worlds, 64.0) * (settings[2].second == settings[1].second / 2 ? 2 : 1) * std::min(dirs, 16.0);
  }));
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_THAT(AsOverrides(search->best.settings),
              ElementsAre("directions.num_envs=64", "directions.num_dirs=16", "directions.dir_chunk=8"));
}

TEST(Tune, TableMarksTheChoice) {
  TuneSearch search;
  search.trials = {{.point = {16, 2},
                    .settings = {{"runners", 2}, {"rollout.envs_per_runner", 16}},
                    .env_steps_per_second = 55000,
                    .cpu = 0.9},
                   {.point = {16, 4},
                    .settings = {{"runners", 4}, {"rollout.envs_per_runner", 16}},
                    .env_steps_per_second = 60000,
                    .cpu = 0.95}};
  search.best = search.trials[1];
  EXPECT_THAT(FormatTuneTable(search), AllOf(HasSubstr(" RUNNERS ENVS_PER_RUNNER"),
                                             HasSubstr("60,000    95 %  <- chosen"), Not(HasSubstr("GPU"))));
  search.best.gpu = search.trials[1].gpu = 0.5;
  EXPECT_THAT(FormatTuneTable(search), HasSubstr("60,000    95 %    50 %  <- chosen"));
}

TEST(Tune, OfEachOtherSettingTheFastestIsWorthItIfItIsFaster) {
  const TuneTrial best = {.env_steps_per_second = 100};
  const auto trial = [](const std::string& setting, double rate) {
    return BatchTrial{setting, true, TuneTrial{.env_steps_per_second = rate}};
  };
  EXPECT_THAT(WorthIt(best, {trial("ppo.minibatch_size=64", 102), trial("learner.tf32=true", 90)}), IsEmpty());
  EXPECT_THAT(WorthIt(best, {trial("ppo.minibatch_size=64", 110), trial("ppo.minibatch_size=1024", 120),
                             trial("learner.tf32=true", 104)}),
              ElementsAre("learner.tf32=true", "ppo.minibatch_size=1024"));
}

TEST(Tune, AProfileHasTheUsersSettingsAndTheFastest) {
  v1::RunConfig user;
  user.mutable_env()->set_id("CartPole-v1");
  const auto text = ProfileText(user, {"rollout.num_envs=32", "learner.tf32=true"}, {"Measured.", "Twice."});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "# Measured.\n# Twice.\nenv:\n  id: \"CartPole-v1\"\nrollout:\n  num_envs: 32\nlearner:\n  tf32: true\n");
  v1::RunConfig again;
  EXPECT_TRUE(MergeYaml(*text, "profile.yaml", &again).ok());
  EXPECT_FALSE(ProfileText(user, {"ppo.no_such=1"}, {}).ok());
}

}  // namespace
}  // namespace skein
