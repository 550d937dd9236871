// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/run/trainer.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// T steps of one environment with that many agents, of 3 numbers seen and 2 done. Action i of all is i.
struct Trained {
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<Columns> batch;

  Trained(int64_t steps, int64_t agents, const std::vector<uint8_t>& active) {
    EnvSpec spec;
    spec.id = "Sample-v0";
    spec.obs_size = 3;
    spec.action_size = 2;
    spec.action_low = {-1, -1};
    spec.action_high = {1, 1};
    spec.num_agents = static_cast<int>(agents);
    v1::RunConfig config;
    ApplyDefaults(&config);
    config.mutable_env()->set_id("Sample-v0");
    config.mutable_rollout()->set_num_envs(1);
    config.mutable_ppo()->set_epochs(1);
    config.mutable_model()->clear_hidden();
    config.mutable_model()->add_hidden(4);
    auto made = Trainer::Make(config, spec);
    EXPECT_TRUE(made.ok()) << made.status();
    trainer = *std::move(made);
    SampleSizes sizes;
    sizes.T = steps;
    sizes.E = 1;
    sizes.A = agents;
    batch = std::make_unique<Columns>(MakeSchema(MakeSampleShape(sizes)), 1, 1);
    const absl::Span<float> action = batch->values<float>("action"), reward = batch->values<float>("reward");
    for (size_t i = 0; i < action.size(); ++i) action[i] = static_cast<float>(i);
    for (size_t i = 0; i < reward.size(); ++i) reward[i] = i % 2 == 0 ? 1.0f : -1.0f;
    for (float& log_prob : batch->values<float>("log_prob")) log_prob = -2.5f;
    std::copy(active.begin(), active.end(), batch->values<uint8_t>("active").begin());
    EXPECT_TRUE(trainer->Update(batch.get(), 0, 0).ok());
  }
};

TEST(TrainerSamples, AreTheActionsAndAdvantagesOfTheUpdate) {
  const Trained trained(4, 1, {});
  const auto samples = trained.trainer->LastSamples(trained.batch.get());
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->action_size, 2);
  EXPECT_FALSE(samples->discrete);
  EXPECT_THAT(samples->action, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_THAT(samples->stats, SizeIs(1));
  EXPECT_EQ(samples->stats[0].first, "advantage");
  const std::vector<float>& advantage = samples->stats[0].second;
  ASSERT_THAT(advantage, SizeIs(4));
  EXPECT_TRUE(std::all_of(advantage.begin(), advantage.end(), [](float a) { return std::isfinite(a); }));
}

TEST(TrainerSamples, AgentsThatTookNoPartAreNone) {
  const Trained trained(2, 2, {1, 0, 1, 1});  // [T, M]
  const auto samples = trained.trainer->LastSamples(trained.batch.get());
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(samples->action, ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_THAT(samples->stats[0].second, SizeIs(3));
}

TEST(TrainerSamples, ManyAreThinnedOut) {
  const Trained trained(Trainer::kMaxSampled + 2, 1, {});  // Every second one: half of 16386.
  const auto samples = trained.trainer->LastSamples(trained.batch.get());
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_THAT(samples->stats[0].second, SizeIs(8193));
  ASSERT_THAT(samples->action, SizeIs(2 * 8193));
  EXPECT_EQ(samples->action[2], 4);  // Row 2.
}

}  // namespace
}  // namespace skein
