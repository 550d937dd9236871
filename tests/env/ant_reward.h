// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "env/registry.h"

namespace skein {

// The reward of Ant-v5's first step, with all motors at 1, where `main_body` is measured. An option that is refused
// fails the test, with a reward of 0.
inline float AntReward(EnvOptions options, const std::string& main_body) {
  options.mujoco.arguments["main_body"] = main_body;
  const auto env = MakeEnv("Ant-v5", options);
  EXPECT_TRUE(env.ok()) << env.status();
  if (!env.ok()) return 0;
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  (*env)->Reset(random);
  const std::vector<float> action(8, 1.0f);
  float reward = 0;
  (*env)->Step(action.data(), &reward);
  return reward;
}

}  // namespace skein
