// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "env/registry.h"

namespace skein {
namespace {

std::unique_ptr<Env> Make() { return MakeEnv("Walker2d-v5").value(); }

TEST(Walker2d, ItsMetricsAreTheSumsOfTheRewardsTerms) {
  const std::unique_ptr<Env> env = Make();
  ASSERT_THAT(env->spec().episode_metrics, testing::ElementsAre("reward_forward", "reward_ctrl", "reward_survive",
                                                                "x_velocity", "x_position", "z_distance_from_origin"));
  RandomStream reset(1, RandomPurpose::kEnvReset, 0, 0), actions(1, RandomPurpose::kAction, 0, 0);
  env->Reset(reset);
  double sum = 0;
  int steps = 0;
  bool terminated = false;
  while (!terminated) {
    float action[6], reward = 0;
    for (float& a : action) a = static_cast<float>(actions.Uniform(-1, 1));
    terminated = env->Step(action, &reward);
    sum += reward;
    ++steps;
    // Taken over in the middle of the episode, which must not forget what has been counted.
    std::vector<double> state(env->spec().state_size);
    env->SaveState(state.data());
    env->LoadState(state.data());
  }
  float metrics[6];
  env->EpisodeMetrics(metrics);
  EXPECT_NEAR(metrics[0] + metrics[1] + metrics[2], sum, 1e-3);
  EXPECT_EQ(metrics[2], steps - 1);  // The last step found it fallen.
  EXPECT_LT(metrics[1], 0);
  EXPECT_NEAR(metrics[3], metrics[0] / steps, 1e-6);  // The weight of the velocity is 1.
  std::vector<double> state(env->spec().state_size);
  env->SaveState(state.data());
  EXPECT_EQ(metrics[4], static_cast<float>(state[1]));
  EXPECT_EQ(metrics[5], static_cast<float>(state[2] - 1.25));
  env->Reset(reset);
  env->EpisodeMetrics(metrics);
  EXPECT_EQ(metrics[2], 0);
}

TEST(Walker2d, ResetsUniformly) {
  const std::unique_ptr<Env> env = Make();
  std::vector<double> state(env->spec().state_size);
  double largest = 0;
  for (int episode = 0; episode < 200; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    env->Reset(random);
    env->SaveState(state.data());
    EXPECT_NEAR(state[2], 1.25, 0.005);  // z
    for (int i = 0; i < 18; ++i) {
      if (i != 1) largest = std::max(largest, std::abs(state[1 + i]));
    }
  }
  EXPECT_LE(largest, 0.005);
  EXPECT_GT(largest, 0.0049);
}

}  // namespace
}  // namespace skein
