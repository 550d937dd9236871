// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/reinforce/reinforce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "learner/algorithm/registry.h"
#include "learner/network/distribution.h"
#include "tests/learner/ppo_sample.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

v1::RunConfig ReinforceConfig() {
  v1::RunConfig config = SampleConfig();
  v1::ReinforceConfig& reinforce = *config.mutable_reinforce();
  reinforce.set_lr(1e-2);
  reinforce.set_lr_schedule(v1::SCHEDULE_CONSTANT);
  reinforce.set_minibatch_size(32);
  reinforce.set_gamma(0.9);
  reinforce.set_value_coefficient(0.5);
  reinforce.set_entropy_coefficient(0.01);
  reinforce.set_max_grad_norm(0.5);
  config.set_seed(1);
  return config;
}

TEST(Reinforce, TheLossEqualsTheScalarOracle) {
  torch::manual_seed(3);
  for (const bool discrete : {false, true}) {
    const ActorCritic network(SampleNetwork(discrete), 1);
    Minibatch samples;
    samples["obs"] = torch::randn({20, 3});
    samples["action"] = discrete ? torch::randint(2, {20}, torch::kInt64) : torch::randn({20, 2});
    samples["advantage"] = torch::randn({20});
    samples["value_target"] = torch::randn({20});
    const torch::Tensor head = network.PolicyHead(samples["obs"]), guess = network.Value(samples["obs"]);
    const torch::Tensor log_prob = LogProb(network, head, samples["action"]);
    const torch::Tensor spread = discrete ? CategoricalEntropy(head) : GaussianEntropy(network.log_std()).expand({20});
    double policy = 0, value = 0, entropy = 0;
    for (int64_t i = 0; i < 20; ++i) {
      const auto at = [i](const torch::Tensor& x) { return x[i].item<double>(); };
      policy -= at(log_prob) * at(samples["advantage"]) / 20;
      value += std::pow(at(guess) - at(samples["value_target"]), 2) / 20;
      entropy += at(spread) / 20;
    }
    const ReinforceLoss loss(ReinforceConfig().reinforce(), network, torch::kFloat32);
    const Loss::Terms terms = loss.Compute(samples, {});
    ASSERT_EQ(terms.stats.size(), loss.stats().size());
    EXPECT_NEAR(terms.stats[0].item<double>(), policy, 1e-5);
    EXPECT_NEAR(terms.stats[1].item<double>(), value, 1e-5);
    EXPECT_NEAR(terms.stats[2].item<double>(), entropy, 1e-5);
    EXPECT_NEAR(terms.total.item<double>(), policy + 0.5 * value - 0.01 * entropy, 1e-5);
  }
}

// Each action pays where the first observation has its sign: the policy must look at the observation.
TEST(Reinforce, ImprovesDiscreteContextualBandit) {
  torch::manual_seed(12);
  Reinforce reinforce(ReinforceConfig(), SampleNetwork(true), nullptr, torch::kCPU);
  double last = 0;
  for (int iteration = 0; iteration < 150; ++iteration) {
    Batch batch = CollectFrom(reinforce, 8, 16);
    const torch::Tensor want = (batch["obs"].narrow(0, 0, 8).select(2, 0) > 1).to(torch::kInt64);
    batch["reward"] = batch["action"].eq(want).to(torch::kFloat32);
    batch["terminated"].fill_(true);
    last = batch["reward"].mean().item<double>();
    Train(reinforce, batch, 0, iteration);
  }
  EXPECT_GT(last, 0.85);  // 0.5 at first.
}

TEST(Reinforce, TellsWhatAnUpdateCameTo) {
  torch::manual_seed(13);
  v1::RunConfig config = ReinforceConfig();
  config.mutable_reinforce()->set_lr_schedule(v1::SCHEDULE_LINEAR);
  Reinforce reinforce(config, SampleNetwork(), nullptr, torch::kCPU);
  const UpdateStats stats = Train(reinforce, CollectEpisodes(reinforce, 8, 16), 0.25, 0);
  EXPECT_EQ(stats.at("gradient_steps"), 4);  // 128 / 32, once.
  EXPECT_EQ(stats.at("skipped_steps"), 0);
  EXPECT_DOUBLE_EQ(stats.at("lr"), 0.75e-2);
  EXPECT_LE(stats.at("explained_variance"), 1);
  for (const auto& [name, value] : stats) EXPECT_TRUE(std::isfinite(value)) << name;
  EXPECT_EQ(reinforce.WatchRules().size(), 2u);
  for (const WatchRule& rule : reinforce.WatchRules()) EXPECT_NO_THROW(stats.at(rule.stat)) << rule.stat;
}

TEST(MakeAlgorithm, MakesWhatTheConfigurationSaysAndRefusesWhatItDoesNotKnow) {
  EnvSpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  v1::RunConfig config = ReinforceConfig();
  const auto reinforce = MakeAlgorithm(config, spec, nullptr, torch::kCPU);
  ASSERT_TRUE(reinforce.ok()) << reinforce.status();
  EXPECT_NE(dynamic_cast<Reinforce*>(reinforce->get()), nullptr);
  config.clear_algorithm();
  const absl::Status refused = MakeAlgorithm(config, spec, nullptr, torch::kCPU).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("has case 0 of `algorithm`"));
}

TEST(Reinforce, TwoRanksEqualOne) {
  at::set_num_threads(1);
  torch::manual_seed(14);
  Reinforce alone(ReinforceConfig(), SampleNetwork(), nullptr, torch::kCPU);
  std::vector<Batch> batches;
  for (uint64_t i = 0; i < 3; ++i) {
    batches.push_back(CollectEpisodes(alone, 16, 8));
    Train(alone, batches.back(), 0, i);
  }
  RunRanks(2, [&](Collective* collective) {
    at::set_num_threads(1);
    Reinforce reinforce(ReinforceConfig(), SampleNetwork(), collective, torch::kCPU);
    ASSERT_TRUE(reinforce.Synchronize().ok());
    for (uint64_t i = 0; i < 3; ++i) {
      const auto stats = reinforce.Update(ColumnsOf(batches[i], collective->rank() * 4, 4), 0, i);
      ASSERT_TRUE(stats.ok()) << stats.status();
    }
    EXPECT_LT(LargestDifference(reinforce.ModelState(), alone.ModelState()), 1e-4);
  });
}

}  // namespace
}  // namespace skein
