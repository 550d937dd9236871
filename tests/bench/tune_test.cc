// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>

#include "gmock/gmock.h"

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

}  // namespace
}  // namespace skein
