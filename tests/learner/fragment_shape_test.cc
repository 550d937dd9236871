// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/fragment_shape.h"

#include <string>
#include <vector>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trajectory/schema.h"

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

TEST(FragmentShape, ThatMustBeWholeAndDoesNotFitIsRefusedWithWhatHelps) {
  // 512 steps of 16 environments with 4,096 numbers each: 134 MB.
  const std::vector<std::string> large = {"env.id=StickyCartPole-v0", "env.transforms=[stack: 1024]"};
  EXPECT_THAT(Shape(large).status().message(),
              testing::AllOf(testing::HasSubstr("one fragment of 512 steps x 16 environments takes"),
                             testing::HasSubstr("lower rollout.envs_per_runner or rollout.steps_per_iteration, or")));
  std::vector<std::string> async = large;
  async.push_back("sync.mode=async");
  EXPECT_TRUE(Shape(async).ok());
}

TEST(FragmentShape, KnowsWhatThePolicyRemembers) {
  EXPECT_EQ(Shape({"env.id=CartPole-v1"})->policy_state_size, 0);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "model.memory=gru", "model.memory_size=48"})->policy_state_size, 48);
  EXPECT_EQ(Shape({"env.id=CartPole-v1", "model.memory=lstm"})->policy_state_size, 128);  // h and c of 64 units.
}

TEST(CheckEnvState, RefusesStatesOfAnotherSize) {
  const FragmentShape shape = Shape({"env.id=CartPole-v1"}).value();
  EXPECT_TRUE(CheckEnvState({}, shape).ok());
  TicketState state;
  v1::Tensor& rows = state.env_state.emplace();
  rows.add_shape(32);
  rows.add_shape(7);  // Episode, step, return so far; x, x', angle, angle'.
  EXPECT_TRUE(CheckEnvState(state, shape).ok());
  rows.set_shape(1, 6);
  const absl::Status refused = CheckEnvState(state, shape);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "the checkpoint is of another version of CartPole-v1: a state has 6 numbers, this version reads 7; "
            "give the run another --name, or take its weights alone with learner.init_from");
}

TEST(FragmentShape, HasTheFieldsThatTheAlgorithmReads) {
  EXPECT_THAT(Shape({"env.id=CartPole-v1"})->algorithm_fields, testing::ElementsAre("log_prob"));
  EXPECT_THAT(Shape({"env.id=CartPole-v1", "reinforce.lr=0.01"})->algorithm_fields, testing::IsEmpty());
}

// What is new in the oneof `algorithm` and says too little, or asks for what no actor can make, must not go unnoticed.
TEST(AlgorithmFacts, OfEachAlgorithmNameAModeAndOnlyFieldsThatThereAre) {
  const auto* const choice = v1::RunConfig::descriptor()->FindOneofByName("algorithm");
  for (int i = 0; i < choice->field_count(); ++i) {
    const v1::AlgorithmFacts& facts = choice->field(i)->message_type()->options().GetExtension(v1::algorithm_facts);
    EXPECT_GT(facts.sync_modes_size(), 0) << choice->field(i)->name();
    EXPECT_EQ(facts.no_other_mode().empty(), facts.sync_modes_size() == v1::SyncMode_ARRAYSIZE - 1)
        << choice->field(i)->name();
    for (const std::string& field : facts.fields()) EXPECT_THAT(AlgorithmFieldNames(), testing::Contains(field));
  }
}

TEST(FragmentShape, ThatWasAskedForAndDoesNotFitIsRefused) {
  const auto shape = Shape({"env.id=UavNavigate-v0", "rollout.fragment_steps=512"});
  EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.status().message()), testing::HasSubstr("lower rollout.fragment_steps"));
}

}  // namespace
}  // namespace skein
