// SPDX-License-Identifier: Apache-2.0
// What the real Gymnasium says of its environments beside how they step (tests/env/golden/specs.json): limits of steps,
// reward thresholds, bounds of actions, and the names of what a step's `info` has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "env/registry.h"
#include "env/vector_env.h"
#include "nlohmann/json.hpp"
#include "tests/env/golden.h"

namespace skein {
namespace {

nlohmann::json GymnasiumSpecs() { return ReadGolden("specs.json")["specs"]; }

TEST(GymnasiumSpecs, LimitsThresholdsAndBoundsAreEqual) {
  const nlohmann::json specs = GymnasiumSpecs();
  ASSERT_EQ(specs.size(), 3u + 11u);  // Classic and MuJoCo environments.
  for (const nlohmann::json& want : specs) {
    const std::string id = want["id"];
    SCOPED_TRACE(id);
    const EnvSpec spec = FindEnvSpec(id).value();
    EXPECT_EQ(spec.max_episode_steps, want["max_episode_steps"].get<int>());
    EXPECT_EQ(spec.max_episode_steps, want["truncated_after"].get<int>());
    // Here 0 stands for none. Pusher-v5's is 0 in Gymnasium.
    EXPECT_EQ(spec.reward_threshold, want["reward_threshold"].is_null() ? 0 : want["reward_threshold"].get<double>());
    EXPECT_EQ(spec.discrete, want.contains("choices"));
    if (spec.discrete) {
      EXPECT_EQ(spec.action_size, want["choices"].get<int>());
    } else {
      EXPECT_EQ(spec.action_low, want["action_low"].get<std::vector<float>>());
      EXPECT_EQ(spec.action_high, want["action_high"].get<std::vector<float>>());
    }
  }
}

TEST(GymnasiumSpecs, EpisodesThatNeverTerminateAreTruncatedAfterTheSameStep) {
  const std::set<std::string> never = {"HalfCheetah-v5", "Pendulum-v1", "Pusher-v5", "Reacher-v5", "Swimmer-v5"};
  const nlohmann::json specs = GymnasiumSpecs();
  for (const nlohmann::json& want : specs) {
    const std::string id = want["id"];
    if (never.count(id) == 0) continue;
    SCOPED_TRACE(id);
    const int limit = want["truncated_after"];
    const std::unique_ptr<VectorEnv> env = VectorEnv::Make({.env_id = id, .size = 1, .seed = 1}).value();
    const std::vector<float> action(env->spec().action_size);
    for (int t = 1; t <= limit; ++t) {
      const VectorEnv::StepResult result = env->Step(action.data());
      ASSERT_FALSE(result.terminated[0]) << t;
      ASSERT_EQ(result.truncated[0], t == limit) << t;
    }
  }
}

// As docs/environments.md says ("Metrics.").
TEST(GymnasiumSpecs, TheirInfoIsInTheMetricsButForPlacesSidewaysSpeedAndTendons) {
  const std::set<std::string> left_out = {
      "x_position",    "y_position",     "y_velocity", "distance_from_origin", "z_distance_from_origin",
      "tendon_length", "tendon_velocity"};
  const nlohmann::json specs = GymnasiumSpecs();
  std::set<std::string> seen;
  for (const nlohmann::json& want : specs) {
    const std::string id = want["id"];
    SCOPED_TRACE(id);
    const std::vector<std::string> info = want["info"];
    std::vector<std::string> names;
    for (const std::string& name : info) {
      if (left_out.count(name) == 0) names.push_back(name);
      seen.insert(name);
    }
    EXPECT_THAT(FindEnvSpec(id).value().episode_metrics, testing::UnorderedElementsAreArray(names));
  }
  EXPECT_THAT(seen, testing::IsSupersetOf(left_out));
}

}  // namespace
}  // namespace skein
