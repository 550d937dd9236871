// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "learner/algorithm/ppo/ppo.h"
#include "tests/learner/ppo_sample.h"

// Teams: agents that take no part, and a critic that reads the global state.
namespace skein {
namespace {

constexpr uint64_t kSeed = 3;

v1::RunConfig Config() {
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  return config;
}

TEST(PpoAgents, WhoTakesNoPartIsNotTrainedOn) {
  for (const auto mode : {v1::SYNC_MODE_ON_POLICY, v1::SYNC_MODE_ASYNC}) {
    v1::RunConfig config = Config();
    config.mutable_sync()->set_mode(mode);
    config.mutable_ppo()->set_vtrace_rho_max(1);
    config.mutable_ppo()->set_vtrace_c_max(1);
    Ppo ppo(config, CentralNetwork(), kSeed), other(config, CentralNetwork(), kSeed);
    torch::manual_seed(7);
    for (uint64_t iteration = 0; iteration < 3; ++iteration) {
      const Batch batch = CollectTeams(ppo, 12, 3, 2);
      const torch::Tensor absent = batch["active"].logical_not();
      ASSERT_TRUE(absent.any().item<bool>());
      Batch changed = batch;
      // Row T of obs belongs to no sample.
      changed["obs"] = batch["obs"].clone();
      changed["obs"].narrow(0, 0, 12).masked_fill_(absent.unsqueeze(2), 7.5);
      changed["action"] = batch["action"].masked_fill(absent.unsqueeze(2), -3.0);
      changed["log_prob"] = batch["log_prob"].masked_fill(absent, -9.0);
      const UpdateStats stats = Train(ppo, batch, 0, iteration);
      const UpdateStats changed_stats = Train(other, changed, 0, iteration);
      EXPECT_EQ(stats, changed_stats);
      ExpectEqualStates(ppo, other);
    }
  }
}

// What the team earns when an agent is gone counts for that agent's last action: one more at the end of its part is the
// same as one over gamma after it.
TEST(PpoAgents, TheTeamsLaterRewardsBelongToTheLastAction) {
  for (const auto mode : {v1::SYNC_MODE_ON_POLICY, v1::SYNC_MODE_ASYNC}) {
    v1::RunConfig config = Config();
    config.mutable_sync()->set_mode(mode);
    config.mutable_ppo()->set_vtrace_rho_max(1);
    config.mutable_ppo()->set_vtrace_c_max(1);
    Ppo ppo(config, CentralNetwork(), kSeed), other(config, CentralNetwork(), kSeed);
    torch::manual_seed(12);
    Batch batch = CollectTeams(ppo, 12, 3, 2);
    batch["active"].fill_(true);
    batch["terminated"].zero_();
    batch["truncated"].zero_();
    for (const int64_t t : {5, 6}) batch["active"][t][2] = false;
    batch["terminated"][4][2] = true;
    Batch late = batch;
    late["reward"] = batch["reward"].clone();
    const double gamma = config.ppo().gamma();
    late["reward"][4][2] -= 1;
    late["reward"][6][2] += 1 / (gamma * gamma);
    Train(ppo, batch, 0, 0);
    Train(other, late, 0, 0);
    const torch::Tensor counts = batch["active"].flatten();
    const auto of_samples = [&counts](const Ppo& trained) {
      return Find(trained.SampleStats(), "advantage").masked_select(counts);
    };
    EXPECT_TRUE(torch::allclose(of_samples(ppo), of_samples(other), 1e-4, 1e-5));
    // It does count: more of it is more.
    late["reward"][6][2] += 10;
    Ppo richer(config, CentralNetwork(), kSeed);
    Train(richer, late, 0, 0);
    EXPECT_FALSE(torch::allclose(of_samples(ppo), of_samples(richer), 1e-4, 1e-5));
  }
}

TEST(PpoAgents, StatisticsAreOfThoseThatAreAlive) {
  Ppo ppo(Config(), CentralNetwork(), kSeed);
  torch::manual_seed(8);
  const Batch batch = CollectTeams(ppo, 12, 3, 2);
  Train(ppo, batch, 0, 0);
  const torch::Tensor rows = batch["obs"].narrow(0, 0, 12).reshape({-1, 3}).to(torch::kFloat64);
  const torch::Tensor present = rows.index_select(0, batch["active"].flatten().nonzero().squeeze(1));
  EXPECT_EQ(Find(ppo.ModelState(), "obs_normalizer.count").item<double>(), static_cast<double>(present.size(0)));
  EXPECT_TRUE(torch::allclose(Find(ppo.ModelState(), "obs_normalizer.mean"), present.mean(0)));
  // Three environments, twelve steps.
  EXPECT_EQ(Find(ppo.ModelState(), "state_normalizer.count").item<double>(), 36);
  const torch::Tensor states = batch["state"].narrow(0, 0, 12).reshape({-1, 2}).to(torch::kFloat64);
  EXPECT_TRUE(torch::allclose(Find(ppo.ModelState(), "state_normalizer.mean"), states.mean(0)));
}

TEST(PpoAgents, AMinibatchOfNobodyIsNoStep) {
  v1::RunConfig config = Config();
  config.mutable_ppo()->set_minibatch_size(2);  // 24 samples: some of the 12 have two that take no part.
  config.mutable_ppo()->set_epochs(1);
  Ppo ppo(config, CentralNetwork(), kSeed);
  torch::manual_seed(9);
  Batch batch = CollectTeams(ppo, 4, 3, 2);
  batch["active"].zero_();
  batch["active"][0][0] = true;
  batch["active"][2][3] = true;
  const UpdateStats stats = Train(ppo, batch, 0, 0);
  EXPECT_GE(stats.at("gradient_steps"), 1);
  EXPECT_LE(stats.at("gradient_steps"), 2);
  EXPECT_EQ(stats.at("skipped_steps"), 0);
}

TEST(PpoAgents, OnlyACentralCriticReadsTheState) {
  for (const bool central : {false, true}) {
    const ActorCriticOptions network = central ? CentralNetwork() : SampleNetwork();
    Ppo ppo(Config(), network, kSeed), other(Config(), network, kSeed);
    torch::manual_seed(10);
    const Batch batch = CollectTeams(ppo, 12, 3, 2);
    Batch changed = batch;
    changed["state"] = batch["state"].flip(1);
    Train(ppo, batch, 0, 0);
    Train(other, changed, 0, 0);
    EXPECT_EQ(ppo.ParametersDigest() == other.ParametersDigest(), !central);
  }
}

// A value function that is worth having: the return is a number of the global state that no observation tells.
TEST(PpoAgents, ACentralCriticExplainsWhatObservationsDoNot) {
  v1::RunConfig config = Config();
  config.mutable_ppo()->set_epochs(8);
  config.mutable_ppo()->set_gamma(0);
  const auto explained = [&](const ActorCriticOptions& network) {
    Ppo ppo(config, network, kSeed);
    torch::manual_seed(11);
    double last = 0;
    for (uint64_t iteration = 0; iteration < 30; ++iteration) {
      Batch batch = CollectTeams(ppo, 16, 4, 2);
      batch["reward"] = batch["state"].narrow(0, 0, 16).select(2, 0).repeat_interleave(2, 1);
      last = Train(ppo, batch, 0, iteration).at("explained_variance");
    }
    return last;
  };
  EXPECT_GT(explained(CentralNetwork()), 0.8);
  EXPECT_LT(explained(SampleNetwork()), 0.3);
}

}  // namespace
}  // namespace skein
