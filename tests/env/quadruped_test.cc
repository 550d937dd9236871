// SPDX-License-Identifier: Apache-2.0
// QuadrupedStand-v0 against an oracle in Python (scripts/make_quadruped_golden.py), its starts and its pushes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "env/mujoco/library.h"
#include "env/mujoco/tasks/quadruped_pushes.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "tests/env/golden.h"

namespace skein {
namespace {

constexpr int kQpos = 1, kQvel = kQpos + 15, kAfterWarmstart = kQvel + 2 * 14;  // In a saved state.
constexpr double kStep = 0.006;                                                 // s

using Arguments = std::map<std::string, MujocoArgument>;

std::unique_ptr<Env> Make(Arguments arguments = {}) {
  EnvOptions options;
  options.mujoco.arguments = std::move(arguments);
  return MakeEnv("QuadrupedStand-v0", options).value();
}

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
}

float Metric(const Env& env, const std::string& name) {
  const std::vector<std::string>& names = env.spec().episode_metrics;
  std::vector<float> metrics(names.size());
  env.EpisodeMetrics(metrics.data());
  const auto found = std::find(names.begin(), names.end(), name);
  EXPECT_NE(found, names.end()) << name;
  return found == names.end() ? 0 : metrics[found - names.begin()];
}

void ExpectOracle(const nlohmann::json& golden) {
  Arguments arguments;
  for (const auto& [name, value] : golden["arguments"].items()) {
    if (value.is_array()) {
      arguments[name] = std::array<double, 2>{value[0], value[1]};
    } else if (value.is_string()) {
      arguments[name] = value.get<std::string>();
    } else {
      arguments[name] = value.get<double>();
    }
  }
  const std::unique_ptr<Env> env = Make(arguments);
  std::vector<double> start = golden["start"];
  ASSERT_EQ(start.size(), static_cast<size_t>(kAfterWarmstart));
  start.resize(env->spec().state_size);  // A new episode.
  env->LoadState(start.data());
  for (size_t t = 0; t < golden["steps"].size(); ++t) {
    const nlohmann::json& step = golden["steps"][t];
    const std::vector<float> action = step["action"];
    float reward = 0;
    ASSERT_EQ(env->Step(action.data(), &reward), step["terminated"].get<bool>()) << "step " << t;
    ASSERT_NEAR(reward, step["reward"].get<double>(), 1e-6) << "step " << t;
    ASSERT_EQ(Metric(*env, "stood"), step["stood"].get<int>()) << "step " << t;
    ASSERT_EQ(Metric(*env, "stood_in_bands"), step["stood_in_bands"].get<int>()) << "step " << t;
    if (!step.contains("obs")) continue;
    std::vector<float> obs(env->spec().obs_size);
    env->Observe(obs.data());
    ASSERT_EQ(obs, step["obs"].get<std::vector<float>>()) << "step " << t;
  }
  for (const auto& [name, sum] : golden["terms"].items()) EXPECT_NEAR(Metric(*env, name), sum, 1e-3) << name;
  const std::vector<double> final = golden["final"], state = State(*env);
  for (size_t i = 0; i < final.size(); ++i) ASSERT_EQ(state[kQpos + i], final[i]) << "state " << i;
}

TEST(QuadrupedStand, RewardsAndObservesAsTheOracleDoes) {
  const std::string name = "mujoco-" + MujocoLibraryVersion() + "/quadruped.json";
  if (!std::filesystem::exists("tests/env/golden/" + name)) {
    GTEST_SKIP() << "no trajectories of MuJoCo " << MujocoLibraryVersion();
  }
  const nlohmann::json golden = ReadGolden(name);
  ASSERT_EQ(golden["trajectories"].size(), 4u);
  for (const auto& trajectory : golden["trajectories"]) ExpectOracle(trajectory);
}

TEST(QuadrupedStand, ObservesAllOrJoints) {
  const std::unique_ptr<Env> full = Make(), joints = Make({{"observation", std::string("joints")}});
  EXPECT_EQ(full->spec().obs_size, 29);
  EXPECT_EQ(joints->spec().obs_size, 22);
  EXPECT_EQ(full->spec().action_size, 8);
  RandomStream one(1, RandomPurpose::kEnvReset, 0, 0), same(1, RandomPurpose::kEnvReset, 0, 0);
  full->Reset(one);
  joints->Reset(same);
  std::vector<float> all(29), some(22);
  full->Observe(all.data());
  joints->Observe(some.data());
  EXPECT_EQ(std::vector<float>(all.begin() + 7, all.end()), some);
  EnvOptions other;
  other.mujoco.arguments["observation"] = std::string("pixels");
  EXPECT_THAT(std::string(FindEnvSpec("QuadrupedStand-v0", other).status().message()),
              testing::HasSubstr("env.mujoco.observation must be one of full, joints, got 'pixels'"));
}

// Without noise the pose is the crouch. It rests on its feet at once: nothing is in the ground, nothing falls far.
TEST(QuadrupedStand, StartsInACrouchOnTheGround) {
  const std::unique_ptr<Env> env = Make({{"reset_noise_scale", 0.0}});
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  const std::vector<double> state = State(*env);
  for (int leg = 0; leg < 4; ++leg) {
    EXPECT_DOUBLE_EQ(state[kQpos + 7 + 2 * leg], -0.1);
    EXPECT_DOUBLE_EQ(state[kQpos + 8 + 2 * leg], 1.6);  // 80 % of [0, 2].
  }
  EXPECT_NEAR(2 * std::asin(state[kQpos + 5]), -0.08, 1e-12);  // Pitch.
  // The front foot or the back foot is lowest: at hip x = +-0.4, a foot is 0.3 (sin 0.1 - sin 1.5) from its hip
  // forwards and 0.3 (cos 0.1 + cos 1.5) below it. The pitch of -0.08 lifts the front, so the back foot decides.
  const double x = -0.4 + 0.3 * (std::sin(0.1) - std::sin(1.5)), z = -0.3 * (std::cos(0.1) + std::cos(1.5));
  EXPECT_NEAR(state[kQpos + 2], 0.05 - (std::sin(0.08) * x + std::cos(0.08) * z), 1e-12);
  const float rest[8] = {};
  float reward = 0;
  for (int t = 0; t < 5; ++t) env->Step(rest, &reward);
  EXPECT_NEAR(State(*env)[kQpos + 2], state[kQpos + 2], 0.02);
}

TEST(QuadrupedStand, StartsVaryByTheNoise) {
  const std::unique_ptr<Env> env = Make({{"reset_noise_scale", 0.1}, {"start_knee", 0.7}});
  double lowest = 9, highest = -9;
  for (int episode = 0; episode < 300; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    env->Reset(random);
    const std::vector<double> state = State(*env);
    double norm = 0;
    for (int i = 3; i < 7; ++i) norm += state[kQpos + i] * state[kQpos + i];
    ASSERT_NEAR(norm, 1, 1e-12);
    for (int leg = 0; leg < 4; ++leg) {
      lowest = std::min(lowest, state[kQpos + 8 + 2 * leg]);
      highest = std::max(highest, state[kQpos + 8 + 2 * leg]);
      ASSERT_LE(std::abs(state[kQpos + 7 + 2 * leg] + 0.1), 0.16);  // A tenth of 1.6 rad.
    }
    const float rest[8] = {};
    float reward = 0;
    ASSERT_FALSE(env->Step(rest, &reward));
    ASSERT_LT(std::abs(State(*env)[kQvel + 2]), 0.5);  // It was not in the ground.
  }
  EXPECT_NEAR(lowest, 1.2, 0.01);
  EXPECT_NEAR(highest, 1.6, 0.01);
}

// A state that is loaded again shows what happened between two steps: only a push changes the velocity at once.
TEST(QuadrupedStand, IsPushedInRandomDirections) {
  const Arguments pushed = {{"push_speed", 0.5}, {"push_interval_range", std::array<double, 2>{0.05, 0.1}}};
  std::set<double> directions, intervals;
  for (int episode = 0; episode < 60; ++episode) {
    const std::unique_ptr<Env> env = Make(pushed), calm = Make();
    RandomStream one(1, RandomPurpose::kEnvReset, 0, episode), same(1, RandomPurpose::kEnvReset, 0, episode);
    env->Reset(one);
    calm->Reset(same);
    const float rest[8] = {};
    float reward = 0;
    int last = 0;
    for (int t = 0; t < 30; ++t) {  // Before it falls down.
      // What a step without a push would make of the same state.
      calm->LoadState(State(*env).data());
      env->Step(rest, &reward);
      calm->Step(rest, &reward);
      const std::vector<double> after = State(*env), without = State(*calm);
      const double x = after[kQvel] - without[kQvel], y = after[kQvel + 1] - without[kQvel + 1];
      if (x == 0 && y == 0) continue;
      // Feet on the ground take some of it away within the step.
      EXPECT_GT(std::hypot(x, y), 0.1);
      EXPECT_LE(std::hypot(x, y), 0.6);
      directions.insert(std::atan2(y, x));
      intervals.insert(t - last);
      EXPECT_GE((t - last) * kStep, 0.05 - kStep);
      EXPECT_LE((t - last) * kStep, 0.1 + kStep);
      last = t;
    }
    EXPECT_GT(last, 0);
  }
  EXPECT_GE(directions.size(), 60u);
  EXPECT_LT(*directions.begin(), -2.5);
  EXPECT_GT(*directions.rbegin(), 2.5);
  EXPECT_GT(intervals.size(), 5u);
}

// The settings with which studies push: scripts/directions_study.py and docs/environments.md.
TEST(QuadrupedStand, IsPushedOnceByTheSettingsOfStudies) {
  const quadruped::Pushes pushes{0.5, {5.99, 6.01}};
  for (int episode = 0; episode < 1000; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    double columns[quadruped::kPushColumns] = {}, qvel[2] = {};
    quadruped::Pushes::Start(random, columns);
    for (int step = 0; step < 998; ++step) pushes.Apply(step, kStep, columns, qvel);  // 5.99 s / 0.006 s = 998.3.
    ASSERT_EQ(columns[quadruped::kPushes], 0);
    for (int step = 998; step < 1990; ++step) pushes.Apply(step, kStep, columns, qvel);  // env.max_episode_steps.
    ASSERT_EQ(columns[quadruped::kPushes], 1);
    ASSERT_NEAR(std::hypot(qvel[0], qvel[1]), 0.5, 1e-12);
  }
}

// Settings may change in the middle of an episode: its saved state is taken over by an instance with pushes.
TEST(QuadrupedStand, PushesBeginInAnEpisodeThatBeganWithoutThem) {
  const std::unique_ptr<Env> calm = Make();
  const std::unique_ptr<Env> pushed =
      Make({{"push_speed", 1.0}, {"push_interval_range", std::array<double, 2>{0.05, 0.06}}});
  ASSERT_EQ(calm->spec().state_size, pushed->spec().state_size);
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  calm->Reset(random);
  const float rest[8] = {};
  float reward = 0;
  for (int t = 0; t < 3; ++t) calm->Step(rest, &reward);
  pushed->LoadState(State(*calm).data());
  double fastest = 0;
  for (int t = 0; t < 15; ++t) {
    pushed->Step(rest, &reward);
    const std::vector<double> state = State(*pushed);
    fastest = std::max(fastest, std::hypot(state[kQvel], state[kQvel + 1]));
    if (t < 7) {
      EXPECT_LT(fastest, 0.3) << t;  // Not at once: 0.05 s are eight steps.
    }
  }
  EXPECT_GT(fastest, 0.5);
}

}  // namespace
}  // namespace skein
