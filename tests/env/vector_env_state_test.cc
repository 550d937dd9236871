// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "env/registry.h"
#include "env/vector_env.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

constexpr int kEnvs = 3;

std::unique_ptr<VectorEnv> Make(const std::string& id, int max_episode_steps = 0) {
  return VectorEnv::Make({.env_id = id, .size = kEnvs, .max_episode_steps = max_episode_steps}).value();
}

std::vector<double> State(const VectorEnv& env) {
  std::vector<double> state(env.size() * env.state_size());
  env.SaveState(state.data());
  return state;
}

void StepRandomly(VectorEnv& env, RandomStream& random, int steps) {
  std::vector<float> action(kEnvs * env.spec().num_agents * (env.spec().discrete ? 1 : env.spec().action_size));
  for (int t = 0; t < steps; ++t) {
    for (float& a : action) a = static_cast<float>(random.Uniform(-1, 2));
    env.Step(action.data());
  }
}

TEST(VectorEnvState, ContinuesBitForBitAcrossEpisodes) {
  for (const EnvInfo& info : ListEnvs()) {
    if (!info.spec.relocatable) continue;
    const std::unique_ptr<VectorEnv> whole = Make(info.id, 30), resumed = Make(info.id, 30);
    whole->ResetAll(4);
    RandomStream actions(1, RandomPurpose::kAction, 0, 0);
    StepRandomly(*whole, actions, 45);
    const std::vector<double> saved = State(*whole);
    ASSERT_TRUE(resumed->LoadState(4, saved.data()).ok());
    EXPECT_EQ(State(*resumed), saved) << info.id;
    EXPECT_EQ(resumed->env_index(1), 5u);
    EXPECT_EQ(resumed->episode(1), whole->episode(1));
    EXPECT_EQ(resumed->step(1), whole->step(1));
    std::vector<float> obs(kEnvs * info.spec.num_agents * info.spec.obs_size), resumed_obs(obs.size());
    whole->Observe(obs.data());
    resumed->Observe(resumed_obs.data());
    EXPECT_EQ(obs, resumed_obs) << info.id;

    RandomStream same_actions = actions;
    StepRandomly(*whole, actions, 60);
    StepRandomly(*resumed, same_actions, 60);
    EXPECT_EQ(State(*whole), State(*resumed)) << info.id;
  }
}

TEST(VectorEnvState, OfWhatIsNotRelocatableIsEmptyAndNotLoaded) {
  const std::unique_ptr<VectorEnv> env = Make("StickyCartPole-v0");
  env->ResetAll(4);
  EXPECT_EQ(env->state_size(), 0);
  env->SaveState(nullptr);
  EXPECT_EQ(env->LoadState(4, nullptr).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(env->failure().ok());
}

TEST(VectorEnvState, WhatIsNotRelocatablePlaysTheSameEpisodesAndBeginsWithAnyOfThem) {
  const std::unique_ptr<VectorEnv> sticky = Make("StickyCartPole-v0", 10), begun = Make("StickyCartPole-v0", 10);
  const std::unique_ptr<VectorEnv> cartpole = Make("CartPole-v1", 10);
  sticky->ResetAll(4);
  cartpole->ResetAll(4);
  const std::vector<float> action(kEnvs, 1);
  std::vector<float> obs(kEnvs * 4), want(kEnvs * 4);
  while (sticky->episode(0) < 2) {
    sticky->Step(action.data());
    cartpole->Step(action.data());
    sticky->Observe(obs.data());
    cartpole->Observe(want.data());
    ASSERT_EQ(obs, want);
  }
  begun->ResetAll(4, 2);
  begun->Observe(obs.data());
  EXPECT_EQ(begun->episode(0), 2u);
  EXPECT_EQ(std::vector<float>(obs.begin(), obs.begin() + 4), std::vector<float>(want.begin(), want.begin() + 4));
}

TEST(VectorEnvState, ARowIsEpisodeStepReturnThenTheEnvironmentsOwn) {
  const std::unique_ptr<VectorEnv> env = Make("CartPole-v1", 10);
  EXPECT_EQ(env->state_size(), 3 + 4);
  env->ResetAll(0);
  const float action[] = {1, 0, 1};
  for (int t = 0; t < 7; ++t) {
    env->Step(action);
    if (t == 0) {
      EXPECT_EQ(State(*env)[2], 1);
    }
  }
  const std::vector<double> state = State(*env);
  EXPECT_EQ(state[0], 0);
  EXPECT_EQ(state[1], 7);
  EXPECT_EQ(state[2], 7);
  std::vector<float> obs(kEnvs * 4);
  env->Observe(obs.data());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float>(state[3 + i]), obs[i]);
}

TEST(VectorEnvState, RefusesAStateThatCannotBeAndChangesNothing) {
  const std::unique_ptr<VectorEnv> env = Make("Pendulum-v1");
  env->ResetAll(0);
  const std::vector<double> good = State(*env);
  const size_t row = env->state_size();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<size_t, double> bad[] = {
      {row + 3, nan},                                           // The environment's own.
      {row + 4, std::numeric_limits<double>::infinity()},       //
      {2 * row + 2, -std::numeric_limits<double>::infinity()},  // Return.
      {2 * row + 0, -1},                                        // Episode.
      {0, 0.5},
      {0, 4294967296.0},
      {1, -1},  // Step.
      {1, 1.5},
      {1, 200},  // It would have been truncated.
      {row + 1, nan},
  };
  for (const auto& [position, value] : bad) {
    std::vector<double> state = good;
    state[position] = value;
    const absl::Status status = env->LoadState(0, state.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << position << " " << value;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("environment " + std::to_string(position / row)));
  }
  EXPECT_EQ(env->LoadState(4294967296 - 2, good.data()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(State(*env), good);
  EXPECT_TRUE(env->LoadState(4294967296 - 3, good.data()).ok());
}

TEST(VectorEnvState, AHalfCheetahThatComesApartIsTruncatedAndRunsOn) {
  ExpectMujocoWarnings(1);
  const std::unique_ptr<VectorEnv> env = Make("HalfCheetah-v5");
  env->ResetAll(0);
  std::vector<double> state = State(*env);
  const size_t row = env->state_size();
  state[row + 3 + 1] = 1e11;  // The second environment's x: finite, but MuJoCo says bad.
  ASSERT_TRUE(env->LoadState(0, state.data()).ok());
  std::vector<float> before(kEnvs * 17), after(before.size());
  env->Observe(before.data());
  const std::vector<float> action(kEnvs * 6, 0.5f);
  VectorEnv::StepResult result = env->Step(action.data());
  EXPECT_FALSE(result.truncated[0] || result.truncated[2]);
  EXPECT_TRUE(result.truncated[1]);
  EXPECT_FALSE(result.terminated[1]);
  EXPECT_EQ(result.reward[1], 0);
  for (int i = 0; i < 17; ++i) EXPECT_EQ(result.final_obs[17 + i], before[17 + i]);
  EXPECT_EQ(env->episode(1), 1u);
  env->Observe(after.data());
  for (const float x : after) EXPECT_TRUE(std::isfinite(x));
  result = env->Step(action.data());
  EXPECT_FALSE(result.truncated[1]);
}

}  // namespace
}  // namespace skein
