// SPDX-License-Identifier: Apache-2.0
#include "trajectory/schema.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

// T=5 E=3 O=4, one agent with two real actions; 6 doubles of state; an algorithm that reads all fields of algorithms.
FragmentShape Shape() {
  FragmentShape shape;
  shape.steps = 5;
  shape.group_envs = 3;
  shape.env_state_size = 6;
  shape.spec.set_obs_size(4);
  shape.spec.set_action_size(2);
  shape.spec.set_num_agents(1);
  shape.algorithm_fields = AlgorithmFieldNames();
  return shape;
}

// Two agents with a choice of two, a global state of 7, a metric, and a policy that remembers 8 floats.
FragmentShape TeamShape() {
  FragmentShape shape = Shape();
  shape.spec.set_num_agents(2);
  shape.spec.set_discrete(true);
  shape.spec.set_global_state_size(7);
  shape.spec.add_episode_metrics("height");
  shape.policy_state_size = 8;
  return shape;
}

std::vector<std::string> Names(const Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields) names.push_back(field.name);
  return names;
}

TEST(Schema, HasWhatEveryRunHas) {
  EXPECT_THAT(Names(MakeSchema(Shape())), ElementsAre("obs", "action", "log_prob", "reward", "terminated", "truncated",
                                                      "env_state", "final_obs", "episode_return", "episode_length"));
}

TEST(Schema, HasWhatTeamsAndMemoriesAdd) {
  EXPECT_THAT(Names(MakeSchema(TeamShape())),
              ElementsAre("obs", "action", "log_prob", "reward", "terminated", "truncated", "state", "active",
                          "agent_terminated", "env_state", "policy_state", "final_obs", "final_state",
                          "episode_metrics", "episode_return", "episode_length"));
}

TEST(Schema, KnowsEachFieldsDimensions) {
  const Schema schema = MakeSchema(TeamShape());
  const FragmentCounts counts{.truncations = 9, .episodes = 11};
  const auto dimensions = [&](const char* name) {
    const Field& field = schema.fields.at(schema.Find(name));
    const std::vector<int64_t> all = schema.Dimensions(field, counts);
    int64_t elements = 1;
    for (const int64_t extent : all) elements *= extent;
    EXPECT_EQ(elements, schema.Rows(field, counts) * schema.RowElements(field)) << name;
    return all;
  };
  EXPECT_THAT(dimensions("obs"), ElementsAre(6, 3, 2, 4));
  EXPECT_THAT(dimensions("action"), ElementsAre(5, 3, 2));
  EXPECT_THAT(dimensions("reward"), ElementsAre(5, 3, 2));
  EXPECT_THAT(dimensions("truncated"), ElementsAre(5, 3));
  EXPECT_THAT(dimensions("state"), ElementsAre(6, 3, 7));
  EXPECT_THAT(dimensions("active"), ElementsAre(5, 3, 2));
  EXPECT_THAT(dimensions("env_state"), ElementsAre(3, 6));
  EXPECT_THAT(dimensions("policy_state"), ElementsAre(3, 2, 8));
  EXPECT_THAT(dimensions("final_obs"), ElementsAre(9, 2, 4));
  EXPECT_THAT(dimensions("final_state"), ElementsAre(9, 7));
  EXPECT_THAT(dimensions("episode_metrics"), ElementsAre(11, 1));
  EXPECT_THAT(dimensions("episode_length"), ElementsAre(11));
  EXPECT_EQ(schema.Find("no_such_field"), -1);
}

TEST(Schema, NarrowsWhatIsObservedAndNothingElse) {
  FragmentShape shape = TeamShape();
  const Schema wide = MakeSchema(shape);
  shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
  const Schema narrow = MakeSchema(shape);
  const std::set<std::string> observed = {"obs", "state", "final_obs", "final_state"};
  const FragmentCounts counts{.truncations = 2, .episodes = 2};
  for (const Field& field : narrow.fields) {
    const bool halved = observed.count(field.name) > 0;
    EXPECT_EQ(narrow.WireBytes(field, counts) * (halved ? 2 : 1), wide.WireBytes(field, counts)) << field.name;
    EXPECT_EQ(narrow.WireType(field), halved ? v1::DATA_TYPE_BFLOAT16 : field.dtype) << field.name;
  }
}

TEST(Schema, HasOfTheAlgorithmsFieldsThoseThatItReads) {
  FragmentShape shape = Shape();
  shape.algorithm_fields = {};
  EXPECT_THAT(Names(MakeSchema(shape)), ElementsAre("obs", "action", "reward", "terminated", "truncated", "env_state",
                                                    "final_obs", "episode_return", "episode_length"));
  shape.algorithm_fields = {"log_prob"};
  EXPECT_THAT(Names(MakeSchema(shape)), ElementsAre("obs", "action", "log_prob", "reward", "terminated", "truncated",
                                                    "env_state", "final_obs", "episode_return", "episode_length"));
}

// A minibatch has one row for each step and agent.
TEST(Schema, HasTheAlgorithmsFieldsOfEachStepAndAgent) {
  FragmentShape shape = Shape();
  shape.algorithm_fields = AlgorithmFieldNames();
  const Schema schema = MakeSchema(shape);
  for (const std::string& name : AlgorithmFieldNames()) {
    ASSERT_GE(schema.Find(name), 0) << name;
    const Field& field = schema.fields[static_cast<size_t>(schema.Find(name))];
    EXPECT_EQ(field.extent, Extent::kStep) << name;
    EXPECT_TRUE(field.per_agent) << name;
  }
}

}  // namespace
}  // namespace skein
