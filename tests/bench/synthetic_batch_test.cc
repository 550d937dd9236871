// SPDX-License-Identifier: Apache-2.0
#include "bench/synthetic_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "base/config/config.h"
#include "learner/network/actor_critic.h"
#include "learner/network/distribution.h"
#include "learner/network/policy_snapshot.h"

namespace skein {
namespace {

using testing::Each;
using testing::ElementsAre;

// 8 steps of 4 environments, episodes of 4 steps; 3 observations, 2 actions.
struct Sample {
  explicit Sample(bool discrete, int agents = 1, int state_size = 0) {
    ApplyDefaults(&config);
    config.mutable_rollout()->set_num_envs(4);
    config.mutable_rollout()->set_steps_per_iteration(32);
    spec.obs_size = 3;
    spec.action_size = 2;
    spec.discrete = discrete;
    spec.num_agents = agents;
    spec.global_state_size = state_size;
    spec.max_episode_steps = 4;
    const ActorCritic network(MakeActorCriticOptions(config.model(), spec), 7);
    batch = MakeSyntheticBatch(config, spec, MakeSnapshot(1, network, ObsScale::Identity(3)));
    if (!batch.ok()) return;
    const torch::NoGradGuard no_grad;
    head = network.PolicyHead(torch::from_blob((*batch)->values<float>("obs").data(), {32, 3}).clone());
    log_std = network.log_std();
  }
  v1::RunConfig config;
  EnvSpec spec;
  absl::StatusOr<std::unique_ptr<Columns>> batch;
  torch::Tensor head, log_std;
};

void ExpectLogProbs(const torch::Tensor& expected, Columns* batch) {
  EXPECT_TRUE(torch::allclose(torch::from_blob(batch->values<float>("log_prob").data(), {32}), expected, 1e-4, 1e-4));
}

TEST(SyntheticBatch, HoldsActionsOfThePolicyWithTheirLogProbabilities) {
  const Sample sample(/*discrete=*/false);
  ASSERT_TRUE(sample.batch.ok()) << sample.batch.status();
  Columns& batch = **sample.batch;
  EXPECT_EQ(batch.steps(), 8);
  EXPECT_EQ(batch.columns(), 4);
  ExpectLogProbs(
      GaussianLogProb(sample.head, sample.log_std, torch::from_blob(batch.values<float>("action").data(), {32, 2})),
      &batch);
  for (float value : batch.values<float>("obs")) ASSERT_TRUE(std::isfinite(value));
  EXPECT_NE(batch.values<float>("reward").front(), batch.values<float>("reward").back());
}

TEST(SyntheticBatch, HoldsChoices) {
  const Sample sample(/*discrete=*/true);
  ASSERT_TRUE(sample.batch.ok()) << sample.batch.status();
  Columns& batch = **sample.batch;
  EXPECT_THAT(batch.values<int64_t>("action"), Each(testing::AllOf(testing::Ge(0), testing::Lt(2))));
  ExpectLogProbs(
      CategoricalLogProb(sample.head, torch::from_blob(batch.values<int64_t>("action").data(), {32}, torch::kInt64)),
      &batch);
}

TEST(SyntheticBatch, EndsEachEnvironmentsEpisodesAtStepsOfItsOwn) {
  const Sample sample(/*discrete=*/false);
  ASSERT_TRUE(sample.batch.ok()) << sample.batch.status();
  const Columns& batch = **sample.batch;
  // Environment e is e steps further in its episode of 4: it ends at steps 3 - e and 7 - e, which is row 4 t + e.
  EXPECT_THAT(batch.values<int64_t>("final_index"), ElementsAre(3, 6, 9, 12, 19, 22, 25, 28));
  EXPECT_EQ(std::count(batch.values<uint8_t>("truncated").begin(), batch.values<uint8_t>("truncated").end(), 1), 8);
  EXPECT_THAT(batch.values<uint8_t>("terminated"), Each(0));
  EXPECT_EQ(batch.values<float>("final_obs").size(), 8u * 3);
}

TEST(SyntheticBatch, OfTeamsHasStatesAndAllAreAlive) {
  const Sample sample(/*discrete=*/true, /*agents=*/2, /*state_size=*/5);
  ASSERT_TRUE(sample.batch.ok()) << sample.batch.status();
  const Columns& batch = **sample.batch;
  EXPECT_EQ(batch.columns(), 8);
  EXPECT_EQ(batch.samples(), 64);  // 8 steps of 8 columns.
  ASSERT_EQ(batch.values<float>("state").size(), 9u * 4 * 5);
  EXPECT_NE(batch.values<float>("state").front(), batch.values<float>("state").back());
  EXPECT_EQ(batch.values<int64_t>("final_index").size(), 16u);  // 8 episodes of two agents.
  ASSERT_EQ(batch.values<float>("final_state").size(), 8u * 5);
  // The first that is truncated is environment 3 in step 0.
  EXPECT_TRUE(std::equal(batch.values<float>("final_state").begin(), batch.values<float>("final_state").begin() + 5,
                         batch.values<float>("state").begin() + 15));
}

}  // namespace
}  // namespace skein
