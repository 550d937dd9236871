// SPDX-License-Identifier: Apache-2.0
// A build without MuJoCo, whose place env/mujoco/absent.cc takes.
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(WithoutMujoco, TasksHaveTheirSpecsAndCannotBeMade) {
  EXPECT_EQ(MujocoLibraryVersion(), "none");
  const auto cheetah = MakeMujocoTask("HalfCheetah-v5");
  ASSERT_TRUE(cheetah.ok()) << cheetah.status();
  EXPECT_EQ((*cheetah)->spec().obs_size, 17);  // 8 positions, 9 velocities.
  EXPECT_EQ((*cheetah)->spec().action_size, 6);
  for (const std::string& id : MujocoTaskIds()) {
    EXPECT_EQ(MakeMujocoEnv(*FindMujocoTask(id)).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(WithoutMujoco, OnlyAModelOfOnesOwnHasNoDigest) {
  EXPECT_EQ(UserModelDigest("CartPole-v1", {}).value(), "");
  MujocoOptions options;
  options.arguments["xml_file"] = std::string("mine.xml");
  EXPECT_EQ(UserModelDigest("Hopper-v5", options).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FindMujocoTask("Hopper-v5", options).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace skein
