// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Registry, KnowsTheLinkedMujocoVersion) {
  EXPECT_THAT(MujocoVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
}

}  // namespace
}  // namespace skein
