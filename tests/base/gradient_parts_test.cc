// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/config/config.h"

namespace skein {
namespace {

// What is wrong with two parts and `settings`; empty: nothing.
std::string LoadError(std::vector<std::string> settings) {
  settings.push_back("learner.gradient_parts=2");
  return std::string(LoadRunConfig("", settings, 2).status().message());
}

TEST(GradientParts, DivideTheEnvGroups) {
  EXPECT_EQ(LoadError({}), "");
  EXPECT_EQ(LoadError({"rollout.num_envs=128", "rollout.envs_per_runner=32"}), "");
  EXPECT_EQ(LoadError({"rollout.num_envs=16"}),
            "learner.gradient_parts (2) must divide the env groups, of which rollout.num_envs (16) / "
            "rollout.envs_per_runner (16) makes 1; change one of the three");
}

TEST(GradientParts, NeedAWholeBatchFromActors) {
  EXPECT_EQ(LoadError({"sync.mode=overlapped"}), "");
  for (const char* mode : {"sync.mode=async", "sync.mode=on_device"}) {
    EXPECT_EQ(LoadError({mode}), "learner.gradient_parts (2) needs sync.mode on_policy or overlapped") << mode;
  }
}

TEST(GradientParts, NeedAGradient) {
  EXPECT_EQ(LoadError({"reinforce.lr=0.1"}), "");
  EXPECT_EQ(LoadError({"ars.step_size=0.1"}), "learner.gradient_parts (2) must be 0 with ars, which has no gradient");
}

}  // namespace
}  // namespace skein
