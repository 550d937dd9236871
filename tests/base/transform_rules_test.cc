// SPDX-License-Identifier: Apache-2.0
#include "base/config/transform_rules.h"

#include <string>
#include <vector>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Error(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  v1::RunConfig base;
  const absl::Status merged = MergeYaml(yaml, "run.yaml", &base);
  if (!merged.ok()) return std::string(merged.message());
  return std::string(LoadRunConfig("", overrides, 2, base).status().message());
}

TEST(Transforms, AreReadInTheirOrderAndWrittenBack) {
  v1::RunConfig base;
  ASSERT_TRUE(MergeYaml("env:\n  id: Pendulum-v1\n  hide: velocities\n"
                        "  transforms: [clip, scale, stack: 4, hide: [3, 8-16], time_limit: 1e3, reward_scale: 0.1, "
                        "reward_clip: [-1, 1], squash]\n",
                        "run.yaml", &base)
                  .ok());
  const auto config = LoadRunConfig("", {}, 2, base);
  ASSERT_TRUE(config.ok()) << config.status();
  const v1::EnvConfig& env = config->env();
  EXPECT_THAT(env.hide(), ElementsAre("velocities"));
  ASSERT_EQ(env.transforms_size(), 8);
  EXPECT_TRUE(env.transforms(0).clip());
  EXPECT_TRUE(env.transforms(1).scale());
  EXPECT_EQ(env.transforms(2).stack(), 4u);
  EXPECT_THAT(env.transforms(3).hide(), ElementsAre("3", "8-16"));
  EXPECT_EQ(env.transforms(4).time_limit(), 1000u);
  EXPECT_EQ(env.transforms(5).reward_scale(), 0.1);
  EXPECT_THAT(env.transforms(6).reward_clip(), ElementsAre(-1, 1));
  EXPECT_TRUE(env.transforms(7).squash());
  v1::RunConfig again;
  ASSERT_TRUE(MergeYaml(ToYaml(*config), "written.yaml", &again).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again, *config)) << ToYaml(*config);
}

TEST(Transforms, CanBeSetAndTakenBackOnACommandLine) {
  v1::RunConfig config;
  ASSERT_TRUE(ApplyOverride("env.transforms=[clip, {stack: 2}]", &config).ok());
  EXPECT_EQ(config.env().transforms_size(), 2);
  ASSERT_TRUE(ApplyOverride("env.transforms=[]", &config).ok());
  EXPECT_EQ(config.env().transforms_size(), 0);
  ASSERT_TRUE(ApplyOverride("env.hide=8-16", &config).ok());
  EXPECT_THAT(config.env().hide(), ElementsAre("8-16"));
  ASSERT_TRUE(ApplyOverride("env.hide=[1, 3]", &config).ok());
  EXPECT_THAT(config.env().hide(), ElementsAre("1", "3"));
  ASSERT_TRUE(ApplyOverride("env.hide=[]", &config).ok());
  EXPECT_EQ(config.env().hide_size(), 0);
}

TEST(Transforms, ThatAreNoneAreRefusedWithTheirPlace) {
  EXPECT_THAT(Error("env: {transforms: [clip, stakc: 4]}"),
              HasSubstr("run.yaml:1:26: env.transforms[1]: unknown transform 'stakc'; there are clip, scale, stack"));
  EXPECT_THAT(Error("env: {transforms: clip}"),
              HasSubstr("env.transforms: expected a list such as [clip, {stack: 4}]"));
  EXPECT_THAT(Error("env: {transforms: [stack]}"), HasSubstr("env.transforms[0].stack: needs a value"));
  EXPECT_THAT(Error("env: {transforms: [{stack: 2, clip: true}]}"), HasSubstr("env.transforms[0]: expected one name"));
  EXPECT_THAT(Error("env: {transforms: [[clip]]}"), HasSubstr("env.transforms[0]: expected one name"));
  EXPECT_THAT(Error("env: {transforms: [stack: 0]}"), HasSubstr("env.transforms[0].stack: must be at least 1, got 0"));
  EXPECT_THAT(Error("env: {transforms: [reward_clip: [1]]}"), HasSubstr("reward_clip: expected two numbers"));
  EXPECT_THAT(Error("env: {transforms: [reward_clip: [1, -1]]}"), HasSubstr("the smaller one first"));
  EXPECT_THAT(Error("env: {transforms: [reward_scale: 0]}"), HasSubstr("reward_scale: must not be 0"));
  EXPECT_THAT(Error("env: {transforms: [clip: false]}"), HasSubstr("env.transforms[0].clip: is not done when"));
  EXPECT_THAT(Error("env: {transforms: [squash: false]}"), HasSubstr("env.transforms[0].squash: is not done when"));
  EXPECT_THAT(Error("env: {transforms: [hide: []]}"), HasSubstr("env.transforms[0]: expected one transform, got 0"));
  EXPECT_THAT(Error("env: {transforms: [time_limit: 10], max_episode_steps: 20}"), HasSubstr("are both given"));
  EXPECT_THAT(Error("env: {hide: {a: b}}"), HasSubstr("env.hide: expected a list such as [3, 8-16], got a mapping"));
}

TEST(Transforms, OnADeviceHideAlone) {
  EXPECT_EQ(Error("env: {id: CartPole-v1, hide: [1], transforms: [hide: [0]]}\nsync: {mode: on_device}"), "");
  EXPECT_THAT(Error("env: {id: CartPole-v1, transforms: [hide: [0], clip]}\nsync: {mode: on_device}"),
              HasSubstr("env.transforms[1]: of the transforms, environments on the device have hide alone"));
}

TEST(Transforms, ACriticSeesWhatIsHiddenIfItCan) {
  EXPECT_EQ(Error("env: {id: CartPole-v1, hide: [1], critic_sees_hidden: true}"), "");
  EXPECT_EQ(Error("env: {id: CartPole-v1, transforms: [clip, hide: [1]], critic_sees_hidden: true}"), "");
  EXPECT_THAT(Error("env: {id: CartPole-v1, transforms: [clip], critic_sees_hidden: true}"),
              HasSubstr("env.critic_sees_hidden: nothing is hidden; name columns in env.hide"));
  EXPECT_THAT(Error("env: {hide: [1], critic_sees_hidden: true}\nmodel: {central_critic: false}"),
              HasSubstr("env.critic_sees_hidden: needs model.central_critic: true"));
  EXPECT_THAT(Error("env: {hide: [1], critic_sees_hidden: true}\nmodel: {shared_trunk: true}"),
              HasSubstr("env.critic_sees_hidden: not with model.shared_trunk"));
  EXPECT_THAT(Error("phases: [{until_steps: 10, set: {env.critic_sees_hidden: true}}]"), HasSubstr("cannot change"));
}

TEST(Transforms, CannotChangeDuringARun) {
  EXPECT_THAT(Error("phases: [{until_steps: 10, set: {env.hide: [1]}}]"), HasSubstr("env.hide: cannot change"));
  EXPECT_THAT(Error("phases: [{until_steps: 10, set: {env.transforms: [clip]}}]"), HasSubstr("cannot change"));
}

}  // namespace
}  // namespace skein
