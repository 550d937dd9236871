// SPDX-License-Identifier: Apache-2.0
#include "actor/held_envs.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

std::unique_ptr<VectorEnv> SomeEnvs() { return VectorEnv::Make({.env_id = "CartPole-v1", .size = 2}).value(); }

TEST(HeldEnvs, GivesBackWhatWasPutOnce) {
  HeldEnvs held;
  EXPECT_EQ(held.Take(1, 0, 7), nullptr);
  std::unique_ptr<VectorEnv> envs = SomeEnvs();
  const VectorEnv* const same = envs.get();
  held.Put(1, 0, 7, std::move(envs));
  held.Put(1, 2, 8, SomeEnvs());
  EXPECT_EQ(held.Take(1, 0, 7).get(), same);
  EXPECT_EQ(held.Take(1, 0, 7), nullptr);
  EXPECT_NE(held.Take(1, 2, 8), nullptr);
}

TEST(HeldEnvs, OthersEpisodesAreNotTaken) {
  HeldEnvs held;
  held.Put(1, 0, 7, SomeEnvs());
  EXPECT_EQ(held.Take(1, 0, 9), nullptr);
  EXPECT_NE(held.Take(1, 0, 7), nullptr);
}

TEST(HeldEnvs, ANewConnectionForgetsThem) {
  HeldEnvs held;
  held.Put(1, 0, 7, SomeEnvs());
  EXPECT_EQ(held.Take(2, 0, 7), nullptr);
  held.Put(1, 0, 7, SomeEnvs());  // Late.
  EXPECT_EQ(held.Take(1, 0, 7), nullptr);
  EXPECT_EQ(held.Take(2, 0, 7), nullptr);
}

}  // namespace
}  // namespace skein
