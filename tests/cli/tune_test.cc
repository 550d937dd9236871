// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>

#include "bench/tune_cache.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Tried(const TuneSearch& search) {
  std::vector<std::string> names;
  for (const TuneTrial& trial : search.trials) names.push_back(trial.point.name());
  return names;
}

// A node that makes `rate(point)` env-steps/s.
MeasureTrial Node(const std::function<double(const ScalingPoint&)>& rate) {
  return [rate](const ScalingPoint& point) -> absl::StatusOr<TuneTrial> {
    return TuneTrial{.point = point, .env_steps_per_second = rate(point), .cpu = 0.5};
  };
}

TEST(Tune, StaysWhereNothingIsFaster) {
  // As fast with anything from 16 environments and two runners on.
  const auto search = SearchFastest(2, 16, 16384, Node([](const ScalingPoint& point) {
                                      return std::min(point.runners, 2u) * std::min(point.envs_per_runner, 16u);
                                    }));
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->best.point.name(), "2x16");
  EXPECT_THAT(Tried(*search), ElementsAre("2x16", "2x64", "2x4", "4x16", "1x16"));
}

TEST(Tune, ClimbsToMoreRunnersWhereStepsSleep) {
  // 100 steps a second of each runner up to 64, whatever its environments.
  const auto search =
      SearchFastest(2, 16, 16384, Node([](const ScalingPoint& point) { return 100.0 * std::min(point.runners, 64u); }));
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->best.point.name(), "64x1");  // One environment does as well as 16.
  EXPECT_EQ(Tried(*search).back(), "128x1");
}

TEST(Tune, TakesMoreEnvironmentsWhereThePolicyIsDear) {
  // Each batch costs as much as 20 steps.
  const auto search = SearchFastest(2, 4, 16384, Node([](const ScalingPoint& point) {
                                      return 1000.0 * std::min(point.runners, 2u) * point.envs_per_runner /
                                             (20.0 + point.envs_per_runner);
                                    }));
  ASSERT_TRUE(search.ok()) << search.status();
  // 256 environments make 93 % of the most, 64 make 76 %; more than 256 are not tried.
  EXPECT_EQ(search->best.point.name(), "2x256");
}

TEST(Tune, TakesFewerRunnersThatAreAsFast) {
  const auto search = SearchFastest(4, 16, 16384, Node([](const ScalingPoint&) { return 1000.0; }));
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_EQ(search->best.point.name(), "1x1");
}

TEST(Tune, TriesOnlyWhatDividesAnIteration) {
  const auto search = SearchFastest(3, 16, 1000, Node([](const ScalingPoint& point) {
                                      EXPECT_EQ(1000 % point.environments(), 0u) << point.name();
                                      return point.environments();
                                    }));
  ASSERT_TRUE(search.ok()) << search.status();
  EXPECT_TRUE(absl::IsInvalidArgument(SearchFastest(2, 16, 0, Node([](const auto&) { return 1; })).status()) ||
              SearchFastest(2, 16, 0, Node([](const auto&) { return 1; })).ok());
}

TEST(Tune, PassesAFailureOn) {
  const auto failed = SearchFastest(
      2, 16, 16384, [](const ScalingPoint&) -> absl::StatusOr<TuneTrial> { return absl::CancelledError("stopped"); });
  EXPECT_TRUE(absl::IsCancelled(failed.status()));
}

TEST(Tune, TableMarksTheChoice) {
  TuneSearch search;
  search.trials = {{.point = {2, 16}, .env_steps_per_second = 55000, .cpu = 0.9},
                   {.point = {4, 16}, .env_steps_per_second = 60000, .cpu = 0.95}};
  search.best = search.trials[1];
  EXPECT_THAT(FormatTuneTable(search), HasSubstr("60,000    95 %  <- chosen"));
}

TuneKey SampleKey() {
  return {.processor = "A processor", .cores = 2, .env = "HalfCheetah-v5", .hidden = {64, 64}, .version = "0.1.0"};
}

TuneChoice SampleChoice(uint32_t runners) {
  return {.runners = runners, .envs_per_runner = 16, .env_steps_per_second = 5e4};
}

TEST(TuneCache, KeepsOneChoiceForEachKey) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/deep/tune.json";
  EXPECT_FALSE(FindTuned(path, SampleKey()));
  ASSERT_TRUE(StoreTuned(path, SampleKey(), SampleChoice(2), "2026-01-30").ok());
  TuneKey wider = SampleKey();
  wider.hidden = {256, 256};
  EXPECT_FALSE(FindTuned(path, wider));
  ASSERT_TRUE(StoreTuned(path, wider, SampleChoice(8), "2026-01-30").ok());
  ASSERT_TRUE(StoreTuned(path, SampleKey(), SampleChoice(4), "2026-01-31").ok());
  const auto found = FindTuned(path, SampleKey());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->runners, 4u);
  EXPECT_EQ(found->envs_per_runner, 16u);
  EXPECT_EQ(found->source, "by `skein tune` of 2026-01-31");
  EXPECT_EQ(FindTuned(path, wider)->runners, 8u);
}

TEST(TuneCache, AnotherMachineEnvironmentOrVersionIsAnotherKey) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/tune.json";
  ASSERT_TRUE(StoreTuned(path, SampleKey(), SampleChoice(2), "2026-01-31").ok());
  TuneKey key = SampleKey();
  key.cores = 4;
  EXPECT_FALSE(FindTuned(path, key));
  key = SampleKey();
  key.env = "CartPole-v1";
  EXPECT_FALSE(FindTuned(path, key));
  EXPECT_FALSE(FindTunedForEnv(path, key));
  key = SampleKey();
  key.version = "0.2.0";
  EXPECT_FALSE(FindTuned(path, key));
  key = SampleKey();
  key.device = "cuda:0";
  EXPECT_FALSE(FindTuned(path, key));
  EXPECT_TRUE(FindTunedForEnv(path, key));
  key = SampleKey();
  key.hidden = {};
  EXPECT_TRUE(FindTunedForEnv(path, key));  // A worker does not know the network.
}

TEST(TuneCache, ADamagedFileIsBegunAnew) {
  const ScratchFolder folder;
  for (const char* text : {"", "[]", "{\"entries\": 3}", "{\"entries\": [1, {\"key\": 2}]}", "not json"}) {
    const std::string path = folder.Write("tune.json", text);
    EXPECT_FALSE(FindTuned(path, SampleKey())) << text;
    ASSERT_TRUE(StoreTuned(path, SampleKey(), SampleChoice(2), "2026-01-31").ok()) << text;
    EXPECT_TRUE(FindTuned(path, SampleKey())) << text;
  }
  EXPECT_FALSE(FindTuned("", SampleKey()));
}

TEST(TuneCache, CannotBeWrittenWhereThereIsNoFolder) {
  const ScratchFolder folder;
  folder.Write("file", "");
  EXPECT_TRUE(absl::IsPermissionDenied(
      StoreTuned(folder.path() + "/file/tune.json", SampleKey(), SampleChoice(2), "2026-01-31")));
}

}  // namespace
}  // namespace skein
