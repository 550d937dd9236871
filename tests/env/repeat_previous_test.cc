// SPDX-License-Identifier: Apache-2.0
#include "env/synthetic/repeat_previous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "env/env_options.h"
#include "env/vector_env.h"

namespace skein {
namespace {

int Shown(const Env& env) {
  std::vector<float> obs(env.spec().obs_size);
  env.Observe(obs.data());
  EXPECT_EQ(std::count(obs.begin(), obs.end(), 1.0f), 1);
  EXPECT_EQ(std::count(obs.begin(), obs.end(), 0.0f), env.spec().obs_size - 1);
  return static_cast<int>(std::find(obs.begin(), obs.end(), 1.0f) - obs.begin());
}

TEST(RepeatPrevious, RewardsWhatWasShownSoManyStepsBefore) {
  const auto env = MakeRepeatPrevious({.delay = 3, .choices = 5});
  RandomStream random(7, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  std::vector<int> shown;
  double best = 0, wrong = 0;
  for (int t = 0; t < env->spec().max_episode_steps; ++t) {
    shown.push_back(Shown(*env));
    const bool knows = t >= 3;
    const float action =
        knows && t % 2 == 0 ? static_cast<float>(shown[t - 3]) : static_cast<float>((knows ? shown[t - 3] + 1 : 0) % 5);
    float reward = -1;
    EXPECT_FALSE(env->Step(&action, &reward));
    (knows && t % 2 == 0 ? best : wrong) += reward;
  }
  EXPECT_EQ(env->spec().max_episode_steps, 67);
  EXPECT_EQ(best, 32);  // Every other of 64.
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(std::set<int>(shown.begin(), shown.end()).size(), 5u);
}

TEST(RepeatPrevious, GoesOnFromASavedState) {
  const auto env = MakeRepeatPrevious({}), other = MakeRepeatPrevious({});
  RandomStream random(7, RandomPurpose::kEnvReset, 0, 1);
  env->Reset(random);
  const float action = 1;
  float reward = 0, same = 0;
  for (int t = 0; t < 10; ++t) env->Step(&action, &reward);
  std::vector<double> state(env->spec().state_size);
  env->SaveState(state.data());
  other->LoadState(state.data());
  for (int t = 0; t < 20; ++t) {
    EXPECT_EQ(Shown(*env), Shown(*other));
    env->Step(&action, &reward);
    other->Step(&action, &same);
    EXPECT_EQ(reward, same);
  }
}

TEST(RepeatPrevious, ItsSizesFollowTheSettings) {
  VectorEnv::Options options;
  options.env_id = "RepeatPrevious-v0";
  options.env.repeat_previous = {.delay = 9, .choices = 6};
  const auto env = VectorEnv::Make(options);
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ((*env)->spec().obs_size, 6);
  EXPECT_EQ((*env)->spec().action_size, 6);
  EXPECT_EQ((*env)->spec().max_episode_steps, 73);
}

}  // namespace
}  // namespace skein
