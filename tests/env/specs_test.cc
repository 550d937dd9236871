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

TEST(GymnasiumSpecs, TheirInfoIsInTheMetrics) {
  const nlohmann::json specs = GymnasiumSpecs();
  for (const nlohmann::json& want : specs) {
    const std::string id = want["id"];
    SCOPED_TRACE(id);
    const EnvSpec spec = FindEnvSpec(id).value();
    std::set<std::string> names;
    for (std::string name : spec.episode_metrics) {
      if (name.rfind("tendon_", 0) == 0) name.resize(name.rfind('_'));  // One metric for each number of an array.
      names.insert(name);
    }
    EXPECT_THAT(want["info"].get<std::set<std::string>>(), testing::ContainerEq(names));
  }
}

}  // namespace
}  // namespace skein
