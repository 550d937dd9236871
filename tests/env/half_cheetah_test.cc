// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>
#include <vector>

#include "env/mujoco/library.h"
#include "env/registry.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

constexpr int kDof = 9;

std::unique_ptr<Env> Make() { return MakeEnv("HalfCheetah-v5").value(); }

void StepRandomly(Env& env, RandomStream& random, int steps) {
  for (int t = 0; t < steps; ++t) {
    float action[6], reward = 0;
    for (float& a : action) a = static_cast<float>(random.Uniform(-1, 1));
    ASSERT_FALSE(env.Step(action, &reward));
    ASSERT_TRUE(std::isfinite(reward));
  }
}

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
}

TEST(HalfCheetah, ResetsUniformlyInPositionAndNormallyInVelocity) {
  constexpr int kEpisodes = 2000;
  const std::unique_ptr<Env> env = Make();
  std::vector<double> mean(2 * kDof), square(2 * kDof), fourth(2 * kDof), largest(2 * kDof);
  for (int episode = 0; episode < kEpisodes; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 3, episode);
    env->Reset(random);
    const std::vector<double> state = State(*env);
    EXPECT_EQ(state[0], 0);  // Time.
    for (int i = 0; i < 2 * kDof; ++i) {
      const double x = state[1 + i];
      mean[i] += x / kEpisodes;
      square[i] += x * x / kEpisodes;
      fourth[i] += x * x * x * x / kEpisodes;
      largest[i] = std::max(largest[i], std::abs(x));
    }
  }
  // U(-a, a) has mean 0, variance a^2/3 and kurtosis 1.8; s N(0, 1) has mean 0, variance s^2 and kurtosis 3.
  // Five standard errors of 2,000: mean 5 * 0.058 / sqrt(2,000) and 5 * 0.1 / sqrt(2,000); variance, relative,
  // 5 * sqrt(0.8 / 2,000) and 5 * sqrt(2 / 2,000).
  for (int i = 0; i < kDof; ++i) {
    EXPECT_LE(largest[i], 0.1);
    EXPECT_GT(largest[i], 0.099);
    EXPECT_NEAR(mean[i], 0, 0.0065) << i;
    EXPECT_NEAR(square[i], 0.01 / 3, 0.1 * 0.01 / 3) << i;
    EXPECT_NEAR(fourth[i] / (square[i] * square[i]), 1.8, 0.15) << i;
  }
  for (int i = kDof; i < 2 * kDof; ++i) {
    EXPECT_GT(largest[i], 0.25);  // Three sigma happen 5 times in 2,000; half as much is bound to.
    EXPECT_NEAR(mean[i], 0, 0.0112) << i;
    EXPECT_NEAR(square[i], 0.01, 0.16 * 0.01) << i;
    EXPECT_NEAR(fourth[i] / (square[i] * square[i]), 3, 0.7) << i;
  }
}

TEST(HalfCheetah, ObservesEverythingButX) {
  const std::unique_ptr<Env> env = Make();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  const std::vector<double> state = State(*env);
  std::vector<float> obs(env->spec().obs_size);
  env->Observe(obs.data());
  // State: time, x, 8 more positions, 9 velocities, ...
  for (int i = 0; i < 17; ++i) EXPECT_EQ(obs[i], static_cast<float>(state[2 + i])) << i;
}

TEST(HalfCheetah, ContinuesBitForBitInAnotherInstance) {
  const std::unique_ptr<Env> whole = Make();
  const std::unique_ptr<Env> resumed = Make();
  RandomStream reset(1, RandomPurpose::kEnvReset, 0, 0);
  whole->Reset(reset);
  RandomStream other_reset(1, RandomPurpose::kEnvReset, 0, 1);
  resumed->Reset(other_reset);
  RandomStream other_actions(1, RandomPurpose::kAction, 1, 0);
  StepRandomly(*resumed, other_actions, 50);  // So that it has a past of its own to forget.

  // 20 times, so that some are while a foot is on the ground and the contact solver's start matters.
  RandomStream actions(1, RandomPurpose::kAction, 0, 0);
  for (int t = 0; t < 1000; ++t) {
    if (t % 50 == 0) resumed->LoadState(State(*whole).data());
    RandomStream same_actions = actions;
    StepRandomly(*whole, actions, 1);
    StepRandomly(*resumed, same_actions, 1);
    ASSERT_EQ(State(*whole), State(*resumed)) << t;
  }
}

TEST(HalfCheetah, ThreadsSharingTheModelComputeTheSameAsOne) {
  const auto play = [](int i) {
    const std::unique_ptr<Env> env = Make();
    RandomStream reset(7, RandomPurpose::kEnvReset, i, 0), actions(7, RandomPurpose::kAction, i, 0);
    env->Reset(reset);
    StepRandomly(*env, actions, 200);
    return State(*env);
  };
  std::vector<std::vector<double>> together(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { together[i] = play(i); });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(together[i], play(i)) << i;
}

TEST(HalfCheetah, ANumberBeyondReasonMakesTheRewardNotFiniteUntilReset) {
  ExpectMujocoWarnings(1);
  const std::unique_ptr<Env> env = Make();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  std::vector<double> state = State(*env);
  state[1 + kDof] = 1e11;  // x velocity; MuJoCo takes numbers above 1e10 for an explosion.
  env->LoadState(state.data());
  const float action[6] = {};
  float reward = 0;
  EXPECT_FALSE(env->Step(action, &reward));
  EXPECT_TRUE(std::isnan(reward));
  env->Reset(random);
  EXPECT_FALSE(env->Step(action, &reward));
  EXPECT_TRUE(std::isfinite(reward));
}

TEST(MujocoLibrary, KeepsWarningsOutOfTheWorkingDirectory) {
  ExpectMujocoWarnings(1);
  std::filesystem::remove("MUJOCO_LOG.TXT");
  const std::unique_ptr<Env> env = Make();
  std::vector<double> state = State(*env);
  state[1] = 1e11;
  env->LoadState(state.data());
  const float action[6] = {};
  float reward = 0;
  env->Step(action, &reward);
  EXPECT_THAT(LastMujocoWarning(), testing::HasSubstr("QPOS"));
  EXPECT_FALSE(std::filesystem::exists("MUJOCO_LOG.TXT"));
}

// Of the second one, which is held, neither the count nor the newest warning says anything.
TEST(MujocoLibrary, HoldsWarningsWhileOneAsks) {
  ExpectMujocoWarnings(2);
  const std::unique_ptr<Env> env = Make();
  const std::vector<double> fine = State(*env);
  const float action[6] = {};
  float reward = 0;
  const auto warn_of = [&](int column) {
    std::vector<double> state = fine;
    state[column] = 1e11;
    env->LoadState(state.data());
    env->Step(action, &reward);
  };
  const int kPosition = 1, kVelocity = kPosition + kDof;
  warn_of(kPosition);
  const int64_t warned = MujocoWarningCount();
  {
    HeldMujocoWarnings held;
    EXPECT_EQ(held.newest(), "");
    warn_of(kVelocity);
    EXPECT_THAT(held.newest(), testing::HasSubstr("QVEL"));
  }
  EXPECT_EQ(MujocoWarningCount(), warned);
  EXPECT_THAT(LastMujocoWarning(), testing::HasSubstr("QPOS"));
  warn_of(kVelocity);
  EXPECT_EQ(MujocoWarningCount(), warned + 1);
}

}  // namespace
}  // namespace skein
