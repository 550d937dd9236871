// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation_episodes.h"

#include <algorithm>
#include <vector>

#include "env/registry.h"
#include "env/uav/uav_layout.h"
#include "eval/episode_policy.h"
#include "gmock/gmock.h"
#include "tests/env/external/built_example.h"
#include "tests/eval/recorded_flight.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

EnvSpec SpecOf(const char* env_id) { return FindEnvSpec(env_id).value(); }

TEST(Baseline, RandomChoosesUniformly) {
  const EnvSpec spec = SpecOf("UavNavigate-v0");
  const auto policy = MakeBaseline("random", spec, {}, 3).value();
  policy->Begin(0, 2);
  std::vector<int> counts(spec.action_size);
  std::vector<float> action(2 * spec.num_agents);
  for (int step = 0; step < 450; ++step) {
    policy->Act(nullptr, action.data());
    for (const float choice : action) ++counts.at(static_cast<size_t>(choice));
  }
  // 450 steps x 2 episodes x 10 agents / 9 choices = 1000, deviation sqrt(9000 (1/9)(8/9)) = 29.8.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(Baseline, RandomRealsFillTheBounds) {
  const auto policy = MakeBaseline("random", SpecOf("Pendulum-v1"), {}, 3).value();
  policy->Begin(0, 100);
  std::vector<float> action(100);
  policy->Act(nullptr, action.data());
  EXPECT_THAT(action, testing::Each(testing::AllOf(testing::Ge(-2), testing::Le(2))));
  EXPECT_LT(*std::min_element(action.begin(), action.end()), -1.5f);
  EXPECT_GT(*std::max_element(action.begin(), action.end()), 1.5f);
}

TEST(Baseline, RandomDependsOnSeedAndEpisodeNotOnHowManyRun) {
  const EnvSpec spec = SpecOf("Pendulum-v1");
  const auto episode_5 = [&](uint64_t seed, uint32_t first, uint32_t count) {
    const auto policy = MakeBaseline("random", spec, {}, seed).value();
    policy->Begin(first, count);
    std::vector<float> action(count);
    policy->Act(nullptr, action.data());
    return action[5 - first];
  };
  EXPECT_EQ(episode_5(1, 5, 1), episode_5(1, 0, 10));
  EXPECT_NE(episode_5(1, 5, 1), episode_5(2, 5, 1));
}

TEST(Baseline, GreedyIsOnlyForTargets) {
  const auto cover = MakeBaseline("greedy", SpecOf("UavCover-v0"), {}, 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(cover));
  EXPECT_THAT(cover.message(), HasSubstr("UavCover-v0"));
  const auto unknown = MakeBaseline("lazy", SpecOf("UavNavigate-v0"), {}, 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(unknown.message(), HasSubstr("random or greedy"));
}

TEST(RunEpisodes, GreedyBeatsRandom) {
  for (const bool continuous : {false, true}) {
    UavOptions options;
    options.continuous = continuous;
    const RecordedFlight greedy = Fly("UavNavigate-v0", "greedy", 19, options);
    const RecordedFlight random = Fly("UavNavigate-v0", "random", 19, options);
    const Spread greedy_success = SpreadOf(greedy.result.metrics.at("success_rate"));
    EXPECT_GT(greedy_success.mean, 0.2);
    EXPECT_GT(greedy_success.mean, 2 * SpreadOf(random.result.metrics.at("success_rate")).mean);
    EXPECT_GT(SpreadOf(greedy.result.returns).mean, SpreadOf(random.result.returns).mean);
  }
}

TEST(RunEpisodes, WithoutObstaclesOneGreedyUavAlwaysArrives) {
  for (const bool continuous : {false, true}) {
    UavOptions options;
    options.uavs = 1;
    options.obstacles = 0;
    options.continuous = continuous;
    const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 29, options);
    EXPECT_THAT(flight.result.metrics.at("success_rate"), testing::Each(1.0)) << continuous;
  }
}

TEST(RunEpisodes, RecordsTheEpisodeFromResetToEnd) {
  // Episode 130 is in the second round.
  const RecordedFlight flight = Fly("UavNavigate-v0", "greedy", 130, {.uavs = 4});
  ASSERT_THAT(flight.result.lengths, SizeIs(131));
  ASSERT_EQ(flight.episode.states.size(), size_t(flight.result.lengths[130]) + 1);
  const UavLayout layout = MakeUavLayout(UavTask::kNavigate, flight.episode.options.uav);
  int arrived = 0;
  for (size_t step = 0; step < flight.episode.states.size(); ++step) {
    EXPECT_EQ(flight.episode.states[step][0], static_cast<double>(step));
  }
  for (int uav = 0; uav < 4; ++uav) arrived += flight.episode.states.back()[layout.saved_uavs + 8 * uav + 4] == 1;
  EXPECT_EQ(flight.result.metrics.at("success_rate")[130], arrived / 4.0);
}

TEST(RunEpisodes, LeavesOutEpisodesThatFailed) {
  const std::string id = "exec:" + BuiltExample("stuck_server");  // Its third step fails.
  const auto policy = MakeBaseline("random", FindEnvSpec(id).value(), {}, 1).value();
  EvaluationResult result;
  ASSERT_TRUE(RunEpisodes(*policy, {.env_id = id}, 3, nullptr, &result).ok());
  EXPECT_EQ(result.failed_episodes, 3u);
  EXPECT_THAT(result.returns, SizeIs(0));
  EXPECT_THAT(result.lengths, SizeIs(0));
  // Two steps are all that an episode may have: it ends before.
  ASSERT_TRUE(RunEpisodes(*policy, {.env_id = id, .max_episode_steps = 2}, 3, nullptr, &result).ok());
  EXPECT_EQ(result.failed_episodes, 0u);
  EXPECT_THAT(result.returns, testing::ElementsAre(2, 2, 2));
}

TEST(RunEpisodes, RefusesWhatTheEnvironmentDoes) {
  const auto policy = MakeBaseline("random", SpecOf("CartPole-v1"), {}, 1).value();
  EvaluationResult result;
  EXPECT_TRUE(absl::IsInvalidArgument(RunEpisodes(*policy, {.env_id = "CartPole-v2"}, 1, nullptr, &result)));
}

}  // namespace
}  // namespace skein
