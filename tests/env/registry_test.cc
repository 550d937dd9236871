// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace skein {
namespace {

TEST(Registry, ListsEveryEnvironmentOnceOrderedById) {
  std::vector<std::string> ids;
  for (const EnvInfo& info : ListEnvs()) ids.push_back(info.id);
  EXPECT_THAT(ids, testing::ElementsAre("Ant-v5", "CartPole-v1", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5",
                                        "HumanoidStandup-v5", "InvertedDoublePendulum-v5", "InvertedPendulum-v5",
                                        "Latency-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Pusher-v5",
                                        "QuadrupedStand-v0", "Reacher-v5", "RepeatPrevious-v0", "StickyCartPole-v0",
                                        "Swimmer-v5", "UavCover-v0", "UavNavigate-v0", "Walker2d-v5"));
}

TEST(Registry, EveryListedEnvironmentIsMadeWithTheListedSpec) {
  for (const EnvInfo& info : ListEnvs()) {
    const absl::StatusOr<std::unique_ptr<Env>> env = MakeEnv(info.id);
    ASSERT_TRUE(env.ok()) << env.status();
    EXPECT_FALSE(info.summary.empty());
    EXPECT_EQ(info.spec.id, info.id);
    EXPECT_EQ((*env)->spec().id, info.id);
    EXPECT_EQ((*env)->spec().obs_size, info.spec.obs_size);
    EXPECT_GT(info.spec.max_episode_steps, 0);
    const size_t bounds = info.spec.discrete ? 0 : info.spec.action_size;
    EXPECT_EQ(info.spec.action_low.size(), bounds);
    EXPECT_EQ(info.spec.action_high.size(), bounds);
  }
}

TEST(Registry, MakesAsManyAsAsked) {
  for (const EnvInfo& info : ListEnvs()) {
    const auto envs = MakeEnvs(info.id, 3);
    ASSERT_TRUE(envs.ok()) << envs.status();
    EXPECT_EQ(envs->size(), 3u);
    for (const std::unique_ptr<Env>& env : *envs) EXPECT_EQ(env->spec().id, info.id);
  }
  EXPECT_EQ(MakeEnvs("HalfCheeta-v5", 3).status(), MakeEnv("HalfCheeta-v5").status());
}

TEST(Registry, AnUnknownIdNamesTheNearestAndWhereAllAreListed) {
  const absl::Status status = MakeEnv("HalfCheeta-v5").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unknown environment 'HalfCheeta-v5'; did you mean 'HalfCheetah-v5'? `skein envs` lists all, "
            "docs/environments.md says how to bring your own");
  EXPECT_THAT(std::string(MakeEnv("cartpole").status().message()), testing::HasSubstr("'CartPole-v1'"));
  EXPECT_THAT(std::string(MakeEnv("Pendulum-v0").status().message()), testing::HasSubstr("'Pendulum-v1'"));
}

TEST(Registry, OtherEnvironmentsRefuseArgumentsOfMujoco) {
  EnvOptions options;
  options.mujoco.arguments["frame_skip"] = 2.0;
  for (const std::string id : {"CartPole-v1", "python:my_world:make"}) {
    const absl::Status status = FindEnvSpec(id, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(std::string(status.message()), "env.mujoco.frame_skip: " + id + " is not a MuJoCo environment");
    EXPECT_EQ(MakeEnv(id, options).status(), status);
  }
}

TEST(Registry, AnEmptyOrEndlessIdIsOnlyUnknown) {
  EXPECT_EQ(MakeEnv("").status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status status = MakeEnv(std::string(1000000, 'x')).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(status.message().size(), 300u);
}

TEST(Registry, FindsASpecWithoutMakingAnEnvironment) {
  for (const EnvInfo& env : ListEnvs()) {
    const auto spec = FindEnvSpec(env.id);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->id, env.id);
    EXPECT_EQ(spec->obs_size, env.spec.obs_size);
  }
  EXPECT_EQ(FindEnvSpec("HalfCheeta-v5").status(), MakeEnv("HalfCheeta-v5").status());
}

TEST(Registry, SaysWhatElseCanBeDoneWithAnEnvironment) {
  EXPECT_EQ(FindEnvExtras("HalfCheetah-v5").drawing, EnvDrawing::kScene);
  EXPECT_TRUE(FindEnvExtras("HalfCheetah-v5").physics);
  EXPECT_TRUE(FindEnvExtras("HalfCheetah-v5").motors_clip);
  EXPECT_EQ(FindEnvExtras("UavCover-v0").drawing, EnvDrawing::kMap);
  for (const char* id : {"CartPole-v1", "python:a:b", "HalfCheeta-v5"}) {
    EXPECT_EQ(FindEnvExtras(id).drawing, EnvDrawing::kNone) << id;
    EXPECT_FALSE(FindEnvExtras(id).physics) << id;
    EXPECT_FALSE(FindEnvExtras(id).motors_clip) << id;
  }
}

TEST(Registry, MakesAGreedyPolicyWhereThereIsOne) {
  EnvOptions options;
  options.uav.uavs = 2;
  const auto greedy = MakeGreedyPolicy("UavNavigate-v0", options);
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  const std::vector<float> obs(size_t{2} * FindEnvSpec("UavNavigate-v0", options)->obs_size);
  std::vector<float> action(2, -1);
  (*greedy)(2, obs.data(), action.data());
  EXPECT_THAT(action, testing::Each(testing::Ge(0)));
  options.uav.uavs = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(MakeGreedyPolicy("UavNavigate-v0", options).status()));
  EXPECT_EQ(
      MakeGreedyPolicy("CartPole-v1", {}).status(),
      absl::InvalidArgumentError("CartPole-v1 has no greedy policy; of all environments only UavNavigate-v0 has one"));
}

TEST(Registry, KnowsTheLinkedMujocoVersion) {
  EXPECT_THAT(MujocoVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
}

}  // namespace
}  // namespace skein
