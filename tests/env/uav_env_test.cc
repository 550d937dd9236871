// SPDX-License-Identifier: Apache-2.0
// UavNavigate-v0 and UavCover-v0 as registered environments: options, sizes, and how simple policies fare.
#include "env/uav/uav_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "env/registry.h"
#include "env/uav/shortest_path.h"
#include "env/vector_env.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(UavTask, IsFoundByTheWholeId) {
  for (const UavTask task : {UavTask::kNavigate, UavTask::kCover}) {
    EXPECT_EQ(FindUavTask(MakeUavSpec(task, {}).id), task);
  }
  for (const EnvInfo& env : ListEnvs()) {
    EXPECT_EQ(FindUavTask(env.id).has_value(), env.id == "UavCover-v0" || env.id == "UavNavigate-v0") << env.id;
  }
  EXPECT_EQ(FindUavTask("UavOfSomebodyElse-v0"), std::nullopt);
}

TEST(UavOptions, ABadOneIsRefusedByName) {
  EXPECT_TRUE(CheckUavOptions({}).ok());
  EXPECT_TRUE(CheckUavOptions({.uavs = 128, .obstacles = 0, .size = 16, .radius = 0.49, .speed = 1}).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<UavOptions, std::string> bad[] = {
      {{.uavs = 0}, "env.uav.uavs: got 0, want 1 to 128"},
      {{.uavs = 129}, "env.uav.uavs: got 129, want 1 to 128"},
      {{.obstacles = -1}, "env.uav.obstacles: got -1, want 0 to 16384"},
      {{.size = 1}, "env.uav.size: got 1, want 2 to 128"},
      {{.size = 129}, "env.uav.size: got 129, want 2 to 128"},
      {{.radius = 0}, "env.uav.radius: got 0, want 0.001 to 0.49"},
      {{.radius = -0.1}, "env.uav.radius: got -0.1, want 0.001 to 0.49"},
      {{.radius = 0.5}, "env.uav.radius: got 0.5, want 0.001 to 0.49"},
      {{.radius = nan}, "env.uav.radius: got nan, want 0.001 to 0.49"},
      {{.speed = 0}, "env.uav.speed: got 0, want 0.001 to 1"},
      {{.speed = 1e-300}, "env.uav.speed: got 1e-300, want 0.001 to 1"},
      {{.speed = 1.5}, "env.uav.speed: got 1.5, want 0.001 to 1"},
      {{.sensing_radius = 0}, "env.uav.sensing_radius: got 0, want 1 to 16"},
      {{.sensing_radius = 17}, "env.uav.sensing_radius: got 17, want 1 to 16"},
      {{.neighbours = -1}, "env.uav.neighbours: got -1, want 0 to 127"},
      {{.neighbours = 128}, "env.uav.neighbours: got 128, want 0 to 127"},
      {{.team_share = 1.1}, "env.uav.team_share: got 1.1, want 0 to 1"},
      {{.team_share = nan}, "env.uav.team_share: got nan, want 0 to 1"},
      {{.progress_reward = -1}, "env.uav.progress_reward: got -1, want 0 to 1e+06"},
      {{.target_reward = -1}, "env.uav.target_reward: got -1, want 0 to 1e+06"},
      {{.cover_reward = -1}, "env.uav.cover_reward: got -1, want 0 to 1e+06"},
      {{.collision_penalty = 2e6}, "env.uav.collision_penalty: got 2e+06, want 0 to 1e+06"},
      {{.step_penalty = -0.5}, "env.uav.step_penalty: got -0.5, want 0 to 1e+06"},
      {{.uavs = 20, .obstacles = 40, .size = 8},
       "env.uav.uavs: 20 UAVs, as many targets and 40 obstacles need 80 cells, got 64 (env.uav.size = 8)"},
      {{.uavs = 1, .obstacles = 64, .size = 8},
       "env.uav.obstacles: 1 UAVs, as many targets and 64 obstacles need 66 cells, got 64 (env.uav.size = 8)"},
  };
  for (const auto& [options, message] : bad) {
    const absl::Status status = CheckUavOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_EQ(status.message(), message);
    for (const char* const id : {"UavNavigate-v0", "UavCover-v0"}) {
      EXPECT_EQ(MakeEnv(id, {.uav = options}).status(), status);
      EXPECT_EQ(MakeEnvs(id, 3, {.uav = options}).status(), status);
      EXPECT_EQ(FindEnvSpec(id, {.uav = options}).status(), status);
    }
  }
  EXPECT_TRUE(MakeEnv("CartPole-v1", {.uav = {.uavs = 0}}).ok());  // Does not read them.
}

TEST(UavEnv, ItsSizesFollowItsOptions) {
  const EnvSpec navigate = FindEnvSpec("UavNavigate-v0").value(), cover = FindEnvSpec("UavCover-v0").value();
  EXPECT_EQ(navigate.num_agents, 10);
  EXPECT_TRUE(navigate.discrete);
  EXPECT_EQ(navigate.action_size, 9);
  EXPECT_EQ(navigate.obs_size, 20 + 7 * 7 + 5 * 4);
  EXPECT_EQ(navigate.global_state_size, 8);
  EXPECT_EQ(navigate.state_size, 2 + 2 * 13 + 8 * 10);  // 400 cells in 13 words.
  EXPECT_EQ(navigate.max_episode_steps, 200);
  EXPECT_EQ(cover.obs_size, 15 + 2 * 7 * 7 + 5 * 4);
  EXPECT_EQ(cover.global_state_size, 5 * 10 + 1 + 200);
  EXPECT_EQ(cover.episode_metrics.size(), 3u);
  const UavOptions options = {.uavs = 128, .size = 64, .continuous = true, .sensing_radius = 5, .neighbours = 0};
  const EnvSpec other = FindEnvSpec("UavNavigate-v0", {.uav = options}).value();
  EXPECT_EQ(other.num_agents, 128);
  EXPECT_EQ(other.obs_size, 20 + 11 * 11);
  EXPECT_FALSE(other.discrete);
  EXPECT_EQ(other.action_low, std::vector<float>(2, -1));
  EXPECT_EQ(other.action_high, std::vector<float>(2, 1));
}

TEST(UavEnv, TeamsOfOneAndOf128FlyInAVectorEnv) {
  for (const int uavs : {1, 128}) {
    for (const char* const id : {"UavNavigate-v0", "UavCover-v0"}) {
      VectorEnv::Options options = {.env_id = id, .size = 2};
      options.env.uav = {.uavs = uavs, .size = 24, .continuous = true};
      const std::unique_ptr<VectorEnv> env = VectorEnv::Make(options).value();
      env->ResetAll(0);
      RandomStream random(1, RandomPurpose::kAction, 0, 0);
      std::vector<float> action(2 * uavs * 2);
      for (int t = 0; t < 100; ++t) {
        for (float& a : action) a = static_cast<float>(random.Uniform(-3, 3));
        env->Step(action.data());
      }
      std::vector<float> obs(2 * uavs * env->spec().obs_size);
      env->Observe(obs.data());
      EXPECT_THAT(obs, testing::Each(testing::AllOf(testing::Ge(-2.01f), testing::Le(2.01f)))) << id;
    }
  }
}

struct Rates {
  double success = 0, collisions = 0;
};

// Means over 200 maps. choose(obs) is one UAV's choice.
template <typename Choose>
Rates Fly(Choose choose) {
  const std::unique_ptr<Env> env = MakeEnv("UavNavigate-v0").value();
  const EnvSpec& spec = env->spec();
  std::vector<float> obs(spec.num_agents * spec.obs_size), action(spec.num_agents), reward(spec.num_agents), metrics(5);
  Rates rates;
  for (int map = 0; map < 200; ++map) {
    RandomStream random(1, RandomPurpose::kEvaluation, map, 0);
    env->Reset(random);
    bool terminated = false;
    for (int t = 0; t < spec.max_episode_steps && !terminated; ++t) {
      env->Observe(obs.data());
      for (int n = 0; n < spec.num_agents; ++n) action[n] = choose(obs.data() + n * spec.obs_size);
      terminated = env->Step(action.data(), reward.data());
    }
    env->EpisodeMetrics(metrics.data());
    rates.success += double{metrics[0]} / 200;
    rates.collisions += double{metrics[1]} / 200;
  }
  return rates;
}

TEST(UavEnv, FlyingStraightToTheTargetIsBetterThanRandomAndNotGood) {
  RandomStream random(1, RandomPurpose::kAction, 0, 0);
  const Rates at_random = Fly([&](const float*) { return static_cast<float>(random.Below(kUavChoices)); });
  const int target = MakeUavLayout(UavTask::kNavigate, {}).obs_target + 2;
  const Rates greedy = Fly([&](const float* obs) {
    int best = 1;
    const auto along = [&](int c) { return obs[target] * kUavDirectionX[c] + obs[target + 1] * kUavDirectionY[c]; };
    for (int choice = 2; choice < kUavChoices; ++choice) best = along(choice) > along(best) ? choice : best;
    return static_cast<float>(best);
  });
  EXPECT_LT(at_random.success, 0.1);
  EXPECT_GT(at_random.collisions, 0.8);
  EXPECT_GT(greedy.success, 0.2);
  EXPECT_LT(greedy.success, 0.7);
  EXPECT_LT(greedy.collisions, at_random.collisions);
}

TEST(UavEnv, FewTargetsAreWalledIn) {
  const std::unique_ptr<Env> env = MakeEnv("UavNavigate-v0").value();
  const UavLayout layout = MakeUavLayout(UavTask::kNavigate, {});
  std::vector<double> state(layout.saved_size);
  constexpr int kStride = 22;
  ShortestPath path(kStride * kStride);
  int walled_in = 0;
  for (int map = 0; map < 1000; ++map) {
    RandomStream random(1, RandomPurpose::kEvaluation, map, 0);
    env->Reset(random);
    env->SaveState(state.data());
    std::vector<uint8_t> occupied(kStride * kStride, 1);
    const auto at = [&](int cell) { return (cell / 20 + 1) * kStride + cell % 20 + 1; };
    for (int cell = 0; cell < layout.cells; ++cell) {
      const auto word = static_cast<uint32_t>(state[layout.saved_obstacles + cell / 32]);
      occupied[at(cell)] = word >> cell % 32 & 1;
    }
    for (int n = 0; n < 10; ++n) {
      const double* const own = state.data() + layout.saved_uavs + n * kUavSavedDoubles;
      walled_in +=
          std::isinf(path.Length(occupied.data(), kStride, at(static_cast<int>(own[6])), at(static_cast<int>(own[7]))));
    }
  }
  EXPECT_LT(walled_in, 50);  // Of 10,000.
}

}  // namespace
}  // namespace skein
