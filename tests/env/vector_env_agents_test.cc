// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/env/departing_team.h"

namespace skein {
namespace {

using testing::ElementsAre;

constexpr float kActions[] = {0, 0, 0, 0};

// Of both environments, their agents beside each other.
std::vector<int> Flags(const uint8_t* flags) { return {flags[0], flags[1], flags[2], flags[3]}; }

TEST(VectorEnvAgents, WhoLeavesTerminatesAloneAndComesBackWithTheNextEpisode) {
  // The first team is left by agent 0 after 1 step and over after 2, the second is over after 3.
  const auto env = MakeDepartingTeams({{1, 2}, {3, 3}});
  VectorEnv::StepResult result = env->Step(kActions);
  EXPECT_THAT(Flags(result.active), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Flags(result.agent_terminated), ElementsAre(1, 0, 0, 0));
  EXPECT_FALSE(result.terminated[0]);

  result = env->Step(kActions);
  EXPECT_THAT(Flags(result.active), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Flags(result.agent_terminated), ElementsAre(0, 1, 0, 0));
  EXPECT_TRUE(result.terminated[0]);
  EXPECT_EQ(result.reward[0], 0);
  EXPECT_EQ(result.episode_return[0], 3);  // Agent 0 one step, agent 1 two.
  EXPECT_EQ(result.episode_metrics[0], 2);
  EXPECT_THAT(std::vector<float>(result.final_state, result.final_state + 2), ElementsAre(2, -2));
  std::vector<float> state(4);
  env->GlobalState(state.data());
  EXPECT_THAT(state, ElementsAre(0, 0, 2, -2));  // The first one has begun again.

  result = env->Step(kActions);
  EXPECT_THAT(Flags(result.active), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Flags(result.agent_terminated), ElementsAre(1, 0, 1, 1));
}

TEST(VectorEnvAgents, ATimeLimitEndsNobodysPart) {
  const auto env = MakeDepartingTeams({{1, 9}, {2, 9}}, 2);
  env->Step(kActions);
  const VectorEnv::StepResult result = env->Step(kActions);
  EXPECT_TRUE(result.truncated[0]);
  EXPECT_TRUE(result.truncated[1]);
  EXPECT_THAT(Flags(result.active), ElementsAre(0, 1, 1, 1));
  // Agent 0 of the second team has left in the very step that was the last one.
  EXPECT_THAT(Flags(result.agent_terminated), ElementsAre(0, 0, 1, 0));
}

TEST(VectorEnvAgents, AliveMaskIsKnownAfterLoading) {
  const auto env = MakeDepartingTeams({{1, 3}, {3, 3}}), other = MakeDepartingTeams({{1, 3}, {3, 3}});
  env->Step(kActions);
  std::vector<double> state(2 * env->state_size());
  env->SaveState(state.data());
  ASSERT_TRUE(other->LoadState(0, state.data()).ok());
  EXPECT_THAT(Flags(other->Step(kActions).active), ElementsAre(0, 1, 1, 1));
}

}  // namespace
}  // namespace skein
