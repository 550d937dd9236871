// SPDX-License-Identifier: Apache-2.0
#include "env/external/world_spec.h"

#include <limits>

#include "env/external/external_id.h"
#include "env/external/plugin_spec.h"
#include "env/external/remote_messages.h"
#include "gmock/gmock.h"
#include "tests/env/external/fake_world.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A team of two with everything that a spec can have but choices.
env::v1::Spec GoodSpec() {
  env::v1::Spec spec;
  spec.set_num_agents(2);
  spec.set_obs_size(3);
  spec.set_action_size(1);
  spec.add_action_low(-1);
  spec.add_action_high(2);
  spec.set_global_state_size(4);
  spec.set_max_episode_steps(100);
  spec.set_reward_threshold(7.5);
  spec.add_episode_metrics("distance_to_goal");
  return spec;
}

TEST(WorldSpec, IsReadAndWritten) {
  const auto spec = ReadSpec(GoodSpec(), "exec:x");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->id, "exec:x");
  EXPECT_EQ(spec->num_agents, 2);
  EXPECT_EQ(spec->action_high, std::vector<float>{2});
  EXPECT_FALSE(spec->relocatable);
  EXPECT_EQ(WriteSpec(*spec).SerializeAsString(), GoodSpec().SerializeAsString());
  const auto again = ParseSpecText(SpecText(*spec), "exec:x");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(CheckSameSpec(*again, *spec).ok());
  EnvSpec other = *spec;
  other.obs_size = 4;
  EXPECT_THAT(CheckSameSpec(other, *spec).message(), HasSubstr("another one than when the run was planned"));
}

TEST(WorldSpec, NamesWhatIsOutOfRange) {
  const auto refusal = [](const std::function<void(env::v1::Spec*)>& spoil) {
    env::v1::Spec spec = GoodSpec();
    spoil(&spec);
    const auto read = ReadSpec(spec, "exec:x");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(read.status().message());
  };
  EXPECT_THAT(refusal([](auto* spec) { spec->set_num_agents(0); }), HasSubstr("num_agents is 0, want 1 to 4096"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_num_agents(4097); }), HasSubstr("num_agents"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_obs_size(0); }), HasSubstr("obs_size is 0"));
  // All agents together: 2^20 numbers.
  EXPECT_THAT(refusal([](auto* spec) { spec->set_obs_size((1 << 19) + 1); }), HasSubstr("want 1 to 524288"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_action_size(0); }), HasSubstr("action_size is 0"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_action_size(2); }), HasSubstr("have 1 and 1 numbers, want 2"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_action_low(0, 2); }), HasSubstr("the bounds of action 0 are 2 and 2"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_action_high(0, std::numeric_limits<float>::infinity()); }),
              HasSubstr("want finite ones"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_global_state_size(1 << 21); }), HasSubstr("global_state_size"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_max_episode_steps(1u << 30); }), HasSubstr("max_episode_steps"));
  EXPECT_THAT(refusal([](auto* spec) { spec->add_episode_metrics("Not a name"); }), HasSubstr("'Not a name'"));
  EXPECT_THAT(refusal([](auto* spec) { spec->set_reward_threshold(NAN); }), HasSubstr("reward_threshold"));
  EXPECT_EQ(ParseSpecText("num_agents: x", "exec:x").status().code(), absl::StatusCode::kFailedPrecondition);
}

// One real action, whose bounds are no more than one number each, and one metric.
SkeinEnvSpec GoodPluginSpec() {
  static const float low[] = {-1}, high[] = {2};
  static const char* const names[] = {"distance_to_goal"};
  SkeinEnvSpec spec = {};
  spec.num_agents = 2;
  spec.obs_size = 3;
  spec.action_size = 1;
  spec.action_low = low;
  spec.action_high = high;
  spec.num_metrics = 1;
  spec.metric_names = names;
  return spec;
}

TEST(PluginSpec, IsRead) {
  const auto spec = ReadPluginSpec(GoodPluginSpec(), "plugin:x");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->num_agents, 2);
  EXPECT_EQ(spec->action_high, std::vector<float>{2});
  EXPECT_EQ(spec->episode_metrics, std::vector<std::string>{"distance_to_goal"});
}

// Reading arrays of these sizes would end the process.
TEST(PluginSpec, IsRefusedByItsSizesBeforeItsArraysAreRead) {
  const auto refusal = [](const std::function<void(SkeinEnvSpec*)>& spoil) {
    SkeinEnvSpec spec = GoodPluginSpec();
    spoil(&spec);
    const auto read = ReadPluginSpec(spec, "plugin:x");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(read.status().message());
  };
  EXPECT_THAT(refusal([](auto* spec) { spec->action_size = 1u << 31; }), HasSubstr("action_size is 2147483648"));
  EXPECT_THAT(refusal([](auto* spec) { spec->num_metrics = 1u << 31; }),
              HasSubstr("num_metrics is 2147483648, want 0 to 256"));
  EXPECT_THAT(refusal([](auto* spec) { spec->action_low = nullptr; }), HasSubstr("have 0 and 0 numbers, want 1"));
  EXPECT_THAT(refusal([](auto* spec) { spec->metric_names = nullptr; }), HasSubstr("metric_names has no name 0"));
}

TEST(ExternalId, IsTakenApart) {
  const auto parsed = ParseExternalId("python:a.b:make?id=X&n=3");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->kind, ExternalId::Kind::kPython);
  EXPECT_EQ(parsed->target, "a.b:make?id=X&n=3");
  const auto remote = ParseExternalId("grpc://host:7200/arm");
  ASSERT_TRUE(remote.ok());
  EXPECT_EQ(remote->target, "host:7200");
  EXPECT_EQ(remote->name, "arm");
  EXPECT_EQ(ParseExternalId("exec:./a b")->target, "./a b");
  EXPECT_EQ(ParseExternalId("plugin:./a.so")->kind, ExternalId::Kind::kPlugin);
  for (const char* wrong : {"python:a", "python::make", "python:a:", "python:1a:make", "python:a..b:make",
                            "exec: ", "plugin:", "grpc://host", "grpc://", "CartPole-v1"}) {
    EXPECT_EQ(ParseExternalId(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(IsExternalId("CartPole-v1"));
}

TEST(TakeReply, TakesRowsAndNamesAColumnOfAnotherSize) {
  const EnvSpec spec = {.id = "grpc://x", .obs_size = 2, .discrete = true, .action_size = 2, .relocatable = false};
  const FakeWorld world(spec, 2, {});
  const WorldColumns& columns = world.columns();
  const auto floats = [](std::vector<float> values) {
    return std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  };
  env::v1::Reply reply;
  reply.set_observation(floats({1, 2, 3, 4}));
  reply.set_reward(floats({5, 6}));
  reply.set_terminated(std::string("\0\1", 2));
  reply.set_truncated(std::string(2, '\0'));
  reply.set_active("\1\1");
  reply.set_final_observation(floats({7, 8, 9, 10}));
  reply.set_failed(std::string(2, '\0'));
  ASSERT_TRUE(TakeReply(reply, spec, 2, WorldRequest::kStep, columns).ok());
  EXPECT_EQ(columns.observation[3], 4);
  EXPECT_EQ(columns.reward[1], 6);
  EXPECT_EQ(columns.terminated[1], 1);
  // A reset changes only what it was for.
  columns.mask[0] = 0;
  columns.mask[1] = 1;
  reply.set_observation(floats({11, 12, 13, 14}));
  ASSERT_TRUE(TakeReply(reply, spec, 2, WorldRequest::kReset, columns).ok());
  EXPECT_EQ(columns.observation[0], 1);
  EXPECT_EQ(columns.observation[2], 13);
  reply.set_observation(floats({1, 2, 3}));
  const absl::Status refused = TakeReply(reply, spec, 2, WorldRequest::kStep, columns);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("observation has 12 bytes, want 16 for 2 environments"));
  EXPECT_EQ(columns.observation[2], 13);  // Nothing was taken.
}

}  // namespace
}  // namespace skein
