// SPDX-License-Identifier: Apache-2.0
// The UAV world against a second one written after the documentation, and what holds in every episode.
#include "env/uav/uav_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "env/uav/uav_place.h"
#include "tests/env/uav_oracle.h"

namespace skein {
namespace {

struct Case {
  const char* name;
  UavTask task;
  UavOptions options;
  int episodes;
};

std::vector<float> Actions(const EnvSpec& spec, RandomStream& random) {
  std::vector<float> action(spec.num_agents * (spec.discrete ? 1 : 2));
  for (float& a : action) {
    a = spec.discrete ? static_cast<float>(random.Below(spec.action_size)) : static_cast<float>(random.Uniform(-1, 1));
  }
  return action;
}

std::vector<double> State(const UavWorld& world, int env) {
  std::vector<double> state(world.spec().state_size);
  world.SaveState(env, state.data());
  return state;
}

std::vector<float> Observation(const UavWorld& world, int env) {
  std::vector<float> obs(world.spec().num_agents * world.spec().obs_size, 7);
  world.Observe(env, obs.data());
  return obs;
}

// Largest difference of two numbers, infinite if there are not as many. Matchers take longer than the world.
float Apart(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(UavWorld, AgreesWithItsDocumentation) {
  const UavTask navigate = UavTask::kNavigate, cover = UavTask::kCover;
  const Case cases[] = {
      {"default", navigate, {}, 6},
      {"default, cover", cover, {}, 4},
      {"continuous", navigate, {.continuous = true}, 4},
      {"continuous, cover", cover, {.continuous = true}, 2},
      {"one", navigate, {.uavs = 1, .neighbours = 0}, 10},
      {"crowded", navigate, {.uavs = 15, .obstacles = 6, .size = 6, .radius = 0.45, .neighbours = 20}, 20},
      {"crowded, slow", cover, {.uavs = 8, .obstacles = 3, .size = 5, .radius = 0.05, .speed = 0.3}, 20},
      {"fast", navigate, {.uavs = 5, .obstacles = 20, .size = 13, .speed = 1, .sensing_radius = 1}, 20},
      {"fast, thin", navigate, {.uavs = 8, .obstacles = 30, .size = 10, .radius = 0.001, .speed = 1}, 20},
      {"fast, thick",
       cover,
       {.uavs = 6, .obstacles = 20, .size = 12, .radius = 0.49, .speed = 1, .continuous = true},
       20},
      {"many", navigate, {.uavs = 128, .obstacles = 60, .size = 32, .sensing_radius = 16, .neighbours = 7}, 1},
      {"smallest", cover, {.uavs = 1, .obstacles = 2, .size = 2, .radius = 0.1}, 20},
  };
  for (const auto& [name, task, options, episodes] : cases) {
    ASSERT_TRUE(CheckUavOptions(options).ok()) << name;
    UavWorld world(task, options, 3);
    UavOracle oracle(task, options);
    const EnvSpec& spec = world.spec();
    std::vector<float> reward(spec.num_agents), expected_reward;
    std::vector<float> global(spec.global_state_size), metrics(spec.episode_metrics.size());
    RandomStream actions(5, RandomPurpose::kAction, 0, 0);
    for (int episode = 0; episode < episodes; ++episode) {
      RandomStream random(9, RandomPurpose::kEnvReset, 3, episode), same = random;
      world.Reset(1, random);
      oracle.Reset(same);
      bool terminated = false;
      for (int t = 0; t < 200 && !terminated; ++t) {
        ASSERT_EQ(State(world, 1), oracle.SaveState()) << name << ", step " << t;
        ASSERT_LE(Apart(Observation(world, 1), oracle.Observe()), 1e-6) << name << ", step " << t;
        world.GlobalState(1, global.data());
        ASSERT_LE(Apart(global, oracle.GlobalState()), 1e-6) << name << ", step " << t;
        const std::vector<float> action = Actions(spec, actions);
        terminated = world.Step(1, action.data(), reward.data());
        ASSERT_EQ(terminated, oracle.Step(action, &expected_reward)) << name << ", step " << t;
        ASSERT_LE(Apart(reward, expected_reward), 1e-5) << name << ", step " << t;
      }
      ASSERT_EQ(State(world, 1), oracle.SaveState()) << name;
      world.EpisodeMetrics(1, metrics.data());
      ASSERT_LE(Apart(metrics, oracle.Metrics()), 1e-5) << name;
    }
  }
}

TEST(UavWorld, NobodyComesBackAndEverybodyIsSomewhere) {
  for (const UavTask task : {UavTask::kNavigate, UavTask::kCover}) {
    UavWorld world(task, {}, 1);
    const EnvSpec& spec = world.spec();
    const UavLayout layout = MakeUavLayout(task, {});
    std::vector<float> reward(10), metrics(spec.episode_metrics.size());
    std::vector<uint8_t> active(10), before(10, 1);
    RandomStream actions(5, RandomPurpose::kAction, 0, 0);
    for (int episode = 0; episode < 20; ++episode) {
      RandomStream random(2, RandomPurpose::kEnvReset, 0, episode);
      world.Reset(0, random);
      std::fill(before.begin(), before.end(), uint8_t{1});
      float coverage = 0;
      bool terminated = false;
      for (int t = 0; t < 200 && !terminated; ++t) {
        world.Active(0, active.data());
        const std::vector<float> obs = Observation(world, 0);
        for (int n = 0; n < 10; ++n) {
          EXPECT_LE(active[n], before[n]);
          if (active[n] == 0) {
            const auto begin = obs.begin() + n * spec.obs_size;
            EXPECT_EQ(std::count(begin, begin + spec.obs_size, 0.0f), spec.obs_size);
          }
        }
        before = active;
        terminated = world.Step(0, Actions(spec, actions).data(), reward.data());
        const std::vector<double> state = State(world, 0);
        int count[3] = {};
        // What the P that were alive were given is (1 - w) N m + P w m.
        float given = 0, part = 0;
        for (int n = 0; n < 10; ++n) {
          part += before[n];
          if (before[n] != 0) given += reward[n];
        }
        const float w = static_cast<float>(UavOptions().team_share), m = given / ((1 - w) * 10 + part * w);
        for (int n = 0; n < 10; ++n) {
          if (before[n] == 0) {
            EXPECT_NEAR(reward[n], w * m, 1e-5);
          }
          ++count[static_cast<int>(state[layout.saved_uavs + n * kUavSavedDoubles + 4])];
        }
        world.EpisodeMetrics(0, metrics.data());
        const float* rates = metrics.data();
        if (task == UavTask::kNavigate) {
          EXPECT_FLOAT_EQ(*rates++, static_cast<float>(count[1]) / 10);
        } else {
          EXPECT_EQ(count[1], 0);
        }
        EXPECT_FLOAT_EQ(rates[0], static_cast<float>(count[2]) / 10);
        EXPECT_EQ(count[0] + count[1] + count[2], 10);
        EXPECT_EQ(terminated, count[0] == 0);
        EXPECT_GE(rates[1], coverage);
        EXPECT_LE(rates[1], 1);
        coverage = rates[1];
      }
    }
  }
}

// One that flies alone crashes exactly where its feeler says so.
TEST(UavWorld, AFeelerSaysWhetherTheStepCrashes) {
  const UavLayout layout = MakeUavLayout(UavTask::kNavigate, {.uavs = 1});
  RandomStream random(8, RandomPurpose::kAction, 0, 0);
  int crashes = 0, clear = 0;
  for (int map = 0; map < 300; ++map) {
    const double radius = random.Uniform(0.001, 0.49), speed = map % 2 == 0 ? 1 : random.Uniform(0.1, 1);
    UavWorld world(UavTask::kNavigate, {.uavs = 1, .obstacles = 120, .radius = radius, .speed = speed}, 1);
    RandomStream reset(2, RandomPurpose::kEnvReset, 0, map);
    world.Reset(0, reset);
    std::vector<double> state = State(world, 0);
    for (int place = 0; place < 50; ++place) {
      // Anywhere, in contact too.
      for (int i = 0; i < 2; ++i) state[layout.saved_uavs + i] = random.Uniform(0, 20);
      world.LoadState(0, state.data());
      const std::vector<float> obs = Observation(world, 0);
      for (int heading = 0; heading < kUavHeadings; ++heading) {
        const float action = static_cast<float>(heading + 1);
        float reward = 0;
        world.LoadState(0, state.data());
        world.Step(0, &action, &reward);
        const bool crashed = State(world, 0)[layout.saved_uavs + 4] == 2;
        ++(crashed ? crashes : clear);
        ASSERT_EQ(obs[layout.obs_feelers + heading] == 1, crashed) << "map " << map << ", heading " << heading;
      }
    }
  }
  EXPECT_GT(crashes, 10000);
  EXPECT_GT(clear, 10000);
}

TEST(UavWorld, ArenasAreIndependentAndTheSeedDecides) {
  UavWorld three(UavTask::kNavigate, {}, 3), one(UavTask::kNavigate, {}, 1);
  const auto reset = [](UavWorld& world, int env, uint64_t seed) {
    RandomStream random(seed, RandomPurpose::kEnvReset, 0, 0);
    world.Reset(env, random);
  };
  for (int env = 0; env < 3; ++env) reset(three, env, 7 + env);
  reset(one, 0, 8);
  EXPECT_EQ(State(three, 1), State(one, 0));
  EXPECT_NE(State(three, 0), State(one, 0));
  RandomStream actions(1, RandomPurpose::kAction, 0, 0);
  std::vector<float> reward(10), same_reward(10);
  for (int t = 0; t < 30; ++t) {
    const std::vector<float> action = Actions(one.spec(), actions);
    one.Step(0, action.data(), reward.data());
    three.Step(0, Actions(one.spec(), actions).data(), same_reward.data());
    three.Step(1, action.data(), same_reward.data());
    ASSERT_EQ(reward, same_reward);
  }
  EXPECT_EQ(State(three, 1), State(one, 0));
  EXPECT_EQ(Observation(three, 1), Observation(one, 0));
}

TEST(UavWorld, GoesOnFromASavedStateBitForBit) {
  for (const UavTask task : {UavTask::kNavigate, UavTask::kCover}) {
    const UavOptions options = {.uavs = 128, .obstacles = 200, .size = 40, .continuous = true};
    UavWorld whole(task, options, 1), resumed(task, options, 2);
    RandomStream random(4, RandomPurpose::kEnvReset, 0, 0), actions(1, RandomPurpose::kAction, 0, 0);
    whole.Reset(0, random);
    std::vector<float> reward(128), same_reward(128), metrics(whole.spec().episode_metrics.size()), same(metrics);
    for (int t = 0; t < 25; ++t) whole.Step(0, Actions(whole.spec(), actions).data(), reward.data());
    resumed.LoadState(1, State(whole, 0).data());
    for (int t = 0; t < 40; ++t) {
      ASSERT_EQ(State(resumed, 1), State(whole, 0));
      ASSERT_EQ(Observation(resumed, 1), Observation(whole, 0));
      const std::vector<float> action = Actions(whole.spec(), actions);
      ASSERT_EQ(resumed.Step(1, action.data(), same_reward.data()), whole.Step(0, action.data(), reward.data()));
      ASSERT_EQ(same_reward, reward);
    }
    whole.EpisodeMetrics(0, metrics.data());
    resumed.EpisodeMetrics(1, same.data());
    EXPECT_EQ(same, metrics);
  }
}

TEST(UavWorld, AStateThatNobodySavedIsHarmless) {
  for (const UavTask task : {UavTask::kNavigate, UavTask::kCover}) {
    UavWorld world(task, {.speed = 1}, 1);
    const EnvSpec& spec = world.spec();
    for (const double odd : {-1e308, -0.5, 0.0, 1.5, 20.0, 1e308}) {
      std::vector<double> state(spec.state_size, odd);
      const UavLayout layout = MakeUavLayout(task, {});
      for (int round = 0; round < 2; ++round) {
        world.LoadState(0, state.data());
        Observation(world, 0);
        std::vector<float> global(spec.global_state_size), metrics(spec.episode_metrics.size()), reward(10);
        world.GlobalState(0, global.data());
        world.EpisodeMetrics(0, metrics.data());
        for (float choice = 0; choice < 9; ++choice) {
          world.LoadState(0, state.data());
          world.Step(0, std::vector<float>(10, choice).data(), reward.data());
          Observation(world, 0);
        }
        // The second time all are alive.
        for (int n = 0; n < 10; ++n) state[layout.saved_uavs + n * kUavSavedDoubles + 4] = 0;
      }
    }
  }
}

// The documented rule is a disc's distance from squares, computed here in double and another way.
TEST(HitsStatic, IsADiscAgainstSquares) {
  constexpr int kSide = 5;
  RandomStream random(3, RandomPurpose::kEnvReset, 0, 0);
  int hits = 0, compared = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    uint8_t grid[kSide * kSide];
    for (uint8_t& cell : grid) cell = random.Below(4) == 0;
    const float x = static_cast<float>(random.Uniform(2, 3)), y = static_cast<float>(random.Uniform(2, 3));
    const float radius = static_cast<float>(random.Uniform(0.01, 0.49));
    double nearest = 100;
    for (int j = 0; j < kSide; ++j) {
      for (int i = 0; i < kSide; ++i) {
        if (grid[j * kSide + i] == 0) continue;
        const double dx = std::max({i - double{x}, double{x} - (i + 1), 0.0});
        const double dy = std::max({j - double{y}, double{y} - (j + 1), 0.0});
        nearest = std::min(nearest, std::hypot(dx, dy));
      }
    }
    if (std::abs(nearest - double{radius}) < 1e-6) continue;
    ++compared;
    hits += nearest < double{radius};
    ASSERT_EQ(HitsStatic(grid, kSide, radius, x, y), nearest < double{radius}) << x << " " << y << " " << radius;
  }
  EXPECT_GT(hits, 1000);
  EXPECT_GT(compared - hits, 1000);
}

}  // namespace
}  // namespace skein
