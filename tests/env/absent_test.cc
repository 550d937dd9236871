// SPDX-License-Identifier: Apache-2.0
// A build without MuJoCo, whose place env/mujoco/absent.cc takes.
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/library.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(WithoutMujoco, HalfCheetahHasItsSpecAndCannotBeMade) {
  EXPECT_EQ(MujocoLibraryVersion(), "none");
  EXPECT_EQ(HalfCheetahSpec().obs_size, 17);  // 8 positions, 9 velocities.
  EXPECT_EQ(HalfCheetahSpec().action_size, 6);
  EXPECT_EQ(MakeHalfCheetah().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace skein
