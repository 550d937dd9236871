// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "env/classic/cartpole.h"
#include "env/classic/mountain_car_continuous.h"
#include "env/classic/pendulum.h"
#include "tests/env/golden.h"

namespace skein {
namespace {

constexpr int kEpisodes = 4000;
// Libraries' sine and cosine may differ in the last bit of a double; then a float32 in its last bit.
constexpr Tolerance kLastBit = {.absolute = 1e-7, .relative = 2e-7};

void ExpectTrajectories(Env& env, Tolerance tolerance) {
  const nlohmann::json golden = ReadGolden("classic.json");
  const nlohmann::json& trajectories = golden[env.spec().id];
  ASSERT_GE(trajectories.size(), 3u);
  for (const nlohmann::json& trajectory : trajectories) {
    ExpectTrajectory(env, trajectory, static_cast<int>(trajectory["steps"].size()), tolerance);
  }
}

// Expects state variable `i` after resets to be uniform in [low, high): bounds, mean and variance.
void ExpectUniformReset(Env& env, int i, double low, double high) {
  double sum = 0, sum_of_squares = 0, smallest = high, largest = low;
  std::vector<double> state(env.spec().state_size);
  for (int episode = 0; episode < kEpisodes; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    env.Reset(random);
    env.SaveState(state.data());
    const double centred = state[i] - (low + high) / 2;
    sum += centred;
    sum_of_squares += centred * centred;
    smallest = std::min(smallest, state[i]);
    largest = std::max(largest, state[i]);
  }
  const double range = high - low;
  EXPECT_GE(smallest, low - 1e-7);  // MountainCarContinuous rounds to float32.
  EXPECT_LE(largest, high + 1e-7);
  // The nearest of 4,000 draws to a bound is on average range / 4,000 away.
  EXPECT_LT(smallest, low + range * 0.01);
  EXPECT_GT(largest, high - range * 0.01);
  // Standard errors: of the mean range * sqrt(1/12 / 4,000) = 0.0046 range; of the variance
  // range^2 * sqrt((1/80 - 1/144) / 4,000) = 0.0012 range^2. Five of each.
  EXPECT_NEAR(sum / kEpisodes, 0, 0.023 * range);
  EXPECT_NEAR(sum_of_squares / kEpisodes, range * range / 12, 0.006 * range * range);
}

TEST(CartPole, StepsLikeGymnasium) {
  const std::unique_ptr<Env> env = MakeCartPole();
  ExpectTrajectories(*env, kLastBit);
}

TEST(CartPole, GivesARewardForTheStepThatTerminatesToo) {
  const std::unique_ptr<Env> env = MakeCartPole();
  const double falling[] = {0, 0, 0.2, 2.0};  // 0.2 + 0.02 * 2 > 12 degrees = 0.2094
  env->LoadState(falling);
  const float right = 1;
  float reward = 0;
  EXPECT_TRUE(env->Step(&right, &reward));
  EXPECT_EQ(reward, 1);
}

TEST(CartPole, ResetsUniformly) {
  const std::unique_ptr<Env> env = MakeCartPole();
  for (int i = 0; i < 4; ++i) ExpectUniformReset(*env, i, -0.05, 0.05);
}

TEST(Pendulum, StepsLikeGymnasium) {
  const std::unique_ptr<Env> env = MakePendulum();
  // Swings past the top double a difference in a few steps.
  ExpectTrajectories(*env, {.absolute = 1e-6, .relative = 1e-6});
}

TEST(Pendulum, CostsNothingAtRestUprightOnAnyTurn) {
  const std::unique_ptr<Env> env = MakePendulum();
  for (const int turns : {-3, 0, 2}) {
    const double upright[] = {turns * 2 * std::numbers::pi, 0};
    env->LoadState(upright);
    const float none = 0;
    float reward = -1;
    EXPECT_FALSE(env->Step(&none, &reward));
    EXPECT_NEAR(reward, 0, 1e-12);
  }
}

TEST(Pendulum, ResetsUniformly) {
  const std::unique_ptr<Env> env = MakePendulum();
  ExpectUniformReset(*env, 0, -std::numbers::pi, std::numbers::pi);
  ExpectUniformReset(*env, 1, -1, 1);
}

TEST(MountainCarContinuous, StepsLikeGymnasium) {
  const std::unique_ptr<Env> env = MakeMountainCarContinuous();
  ExpectTrajectories(*env, kLastBit);
}

TEST(MountainCarContinuous, StopsAtTheLeftWall) {
  const std::unique_ptr<Env> env = MakeMountainCarContinuous();
  const double state[] = {-1.19, -0.05};
  env->LoadState(state);
  const float none = 0;
  float reward = 0, obs[2];
  EXPECT_FALSE(env->Step(&none, &reward));
  env->Observe(obs);
  EXPECT_EQ(obs[0], -1.2f);
  EXPECT_EQ(obs[1], 0);
}

TEST(MountainCarContinuous, PaysForTheGoalLessTheForceUsedOnTheLastStep) {
  const std::unique_ptr<Env> env = MakeMountainCarContinuous();
  const double state[] = {0.44, 0.03};
  env->LoadState(state);
  const float force = 0.5;
  float reward = 0;
  EXPECT_TRUE(env->Step(&force, &reward));
  EXPECT_FLOAT_EQ(reward, 99.975f);  // 100 - 0.1 * 0.5^2
}

TEST(MountainCarContinuous, ResetsUniformlyAtRest) {
  const std::unique_ptr<Env> env = MakeMountainCarContinuous();
  ExpectUniformReset(*env, 0, -0.6, -0.4);
  double state[2];
  env->SaveState(state);
  EXPECT_EQ(state[1], 0);
}

}  // namespace
}  // namespace skein
