// SPDX-License-Identifier: Apache-2.0
// How the episodes of Gymnasium's MuJoCo tasks begin: the distributions of its version 5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

constexpr int kEpisodes = 2000;

// Positions and velocities after each of kEpisodes resets.
std::vector<std::vector<double>> Starts(const std::string& env_id, const EnvOptions& options = {}) {
  const std::unique_ptr<Env> env = MakeEnv(env_id, options).value();
  std::vector<std::vector<double>> starts;
  std::vector<double> state(env->spec().state_size);
  for (int episode = 0; episode < kEpisodes; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 3, episode);
    env->Reset(random);
    env->SaveState(state.data());
    starts.emplace_back(state.begin() + 1, state.end());
  }
  return starts;
}

struct Moments {
  double mean = 0, variance = 0, largest = 0;
};

// Of one number's distance from `centre`.
Moments MomentsOf(const std::vector<std::vector<double>>& starts, int number, double centre) {
  Moments moments;
  for (const auto& start : starts) {
    const double x = start[number] - centre;
    moments.mean += x / kEpisodes;
    moments.variance += x * x / kEpisodes;
    moments.largest = std::max(moments.largest, std::abs(x));
  }
  return moments;
}

// U(-a, a) has the variance a^2 / 3, of which 2,000 samples have it to 2 %. All within a, and one of them near it.
void ExpectUniform(const Moments& moments, double a) {
  EXPECT_NEAR(moments.mean, 0, 0.065 * a);
  EXPECT_NEAR(moments.variance, a * a / 3, 0.1 * a * a / 3);
  EXPECT_LE(moments.largest, a * (1 + 1e-9));
  EXPECT_GT(moments.largest, 0.99 * a);
}

// s N(0, 1): three s happen 5 times in 2,000.
void ExpectNormal(const Moments& moments, double s) {
  EXPECT_NEAR(moments.mean, 0, 0.112 * s);
  EXPECT_NEAR(moments.variance, s * s, 0.16 * s * s);
  EXPECT_GT(moments.largest, 2.5 * s);
}

struct Noise {
  const char* env_id;
  double scale;
  bool normal;  // Of velocities; positions are uniform.
};

class MujocoStarts : public testing::TestWithParam<Noise> {};

TEST_P(MujocoStarts, AreNoiseAroundTheInitialPose) {
  const MujocoTask::Facts facts = (*MakeMujocoTask(GetParam().env_id))->facts();
  EnvOptions still;
  still.mujoco.arguments["reset_noise_scale"] = 0.0;
  const auto starts = Starts(GetParam().env_id), pose = Starts(GetParam().env_id, still);
  EXPECT_EQ(pose.front(), pose.back());
  const bool free = facts.positions > facts.velocities;
  for (int i = 0; i < facts.positions + facts.velocities; ++i) {
    SCOPED_TRACE(i);
    const bool orientation = free && i >= 3 && i < 7;  // MuJoCo scales it to a length of 1.
    const Moments moments = MomentsOf(starts, i, pose[0][i]);
    if (orientation) {
      EXPECT_LE(moments.largest, 2.1 * GetParam().scale);
    } else if (i >= facts.positions && GetParam().normal) {
      ExpectNormal(moments, GetParam().scale);
    } else {
      ExpectUniform(moments, GetParam().scale);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, MujocoStarts,
                         testing::Values(Noise{"Ant-v5", 0.1, true}, Noise{"HalfCheetah-v5", 0.1, true},
                                         Noise{"Hopper-v5", 0.005, false}, Noise{"Humanoid-v5", 0.01, false},
                                         Noise{"HumanoidStandup-v5", 0.01, false},
                                         Noise{"InvertedDoublePendulum-v5", 0.1, true},
                                         Noise{"InvertedPendulum-v5", 0.01, false}, Noise{"Swimmer-v5", 0.1, false},
                                         Noise{"Walker2d-v5", 0.005, false}),
                         [](const auto& info) {
                           const std::string id = info.param.env_id;
                           return id.substr(0, id.find('-'));
                         });

// Share of the starts of which `holds`.
template <typename Predicate>
double ShareOf(const std::vector<std::vector<double>>& starts, Predicate holds) {
  return static_cast<double>(std::count_if(starts.begin(), starts.end(), holds)) / kEpisodes;
}

TEST(MujocoTargets, ReachersTargetIsAnywhereInADisc) {
  const auto starts = Starts("Reacher-v5");
  const auto distance = [](const std::vector<double>& start) { return std::hypot(start[2], start[3]); };
  EXPECT_EQ(ShareOf(starts, [&](const auto& start) { return distance(start) < 0.2; }), 1);
  EXPECT_GT(ShareOf(starts, [&](const auto& start) { return distance(start) > 0.195; }), 0);
  // A quarter of the disc; five standard errors of 2,000.
  EXPECT_NEAR(ShareOf(starts, [&](const auto& start) { return distance(start) < 0.1; }), 0.25, 0.049);
  for (const int i : {2, 3}) EXPECT_NEAR(MomentsOf(starts, i, 0).mean, 0, 0.012);
  for (const int i : {0, 1}) ExpectUniform(MomentsOf(starts, i, 0), 0.1);
  for (const int i : {4, 5}) ExpectUniform(MomentsOf(starts, i, 0), 0.005);
  for (const int i : {6, 7}) EXPECT_EQ(MomentsOf(starts, i, 0).largest, 0);
}

TEST(MujocoTargets, PushersObjectIsInARectangleWithoutADisc) {
  const auto starts = Starts("Pusher-v5");
  const auto inside = [](const std::vector<double>& start) {
    return start[7] >= -0.3 && start[7] <= 0 && std::abs(start[8]) <= 0.2 && std::hypot(start[7], start[8]) > 0.17;
  };
  EXPECT_EQ(ShareOf(starts, inside), 1);
  // 0.3 x 0.4 less half a disc of 0.17: 0.0746. Beyond -0.17 are 0.13 x 0.4 of it.
  EXPECT_NEAR(ShareOf(starts, [](const auto& start) { return start[7] < -0.17; }), 0.697, 0.052);
  EXPECT_NEAR(ShareOf(starts, [](const auto& start) { return start[8] > 0; }), 0.5, 0.056);
  for (const int i : {0, 1, 2, 3, 4, 5, 6, 9, 10}) EXPECT_EQ(MomentsOf(starts, i, 0).largest, 0) << i;
  for (int i = 11; i < 18; ++i) ExpectUniform(MomentsOf(starts, i, 0), 0.005);
  for (int i = 18; i < 22; ++i) EXPECT_EQ(MomentsOf(starts, i, 0).largest, 0) << i;
}

}  // namespace
}  // namespace skein
