// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/fragment_shape.h"

#include <string>
#include <vector>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

absl::StatusOr<FragmentShape> Shape(const std::vector<std::string>& overrides) {
  return MakeFragmentShape(LoadRunConfig("", overrides, 2).value());
}

TEST(FragmentShape, IsAWholeIterationOfEachEnvironment) {
  // 16,384 steps of 32 environments.
  EXPECT_EQ(Shape({"env.id=CartPole-v1"})->steps, 512);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "rollout.fragment_steps=64"})->steps, 64);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "sync.mode=async"})->steps, 32);
}

TEST(FragmentShape, IsTheLargestPartThatFitsIntoAMessage) {
  // Ten UAVs: 61 MB were it 512 steps of 16 environments.
  const auto shape = Shape({"env.id=UavNavigate-v0"});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->steps, 256);
  EXPECT_EQ(shape->spec.num_agents(), 10);
  EXPECT_TRUE(Shape({"env.id=UavCover-v0", "env.uav.uavs=128", "env.uav.size=32"}).ok());
}

TEST(FragmentShape, KnowsWhatThePolicyRemembers) {
  EXPECT_EQ(Shape({"env.id=CartPole-v1"})->policy_state_size, 0);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "model.memory=gru", "model.memory_size=48"})->policy_state_size, 48);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "model.memory=lstm"})->policy_state_size, 128);  // h and c of 64 units.
}

TEST(FragmentShape, ThatWasAskedForAndDoesNotFitIsRefused) {
  const auto shape = Shape({"env.id=UavNavigate-v0", "rollout.fragment_steps=512"});
  EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.status().message()), testing::HasSubstr("lower rollout.fragment_steps"));
}

}  // namespace
}  // namespace skein
