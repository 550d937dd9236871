// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "learner/algorithm/ppo/ppo.h"
#include "tests/learner/ppo_sample.h"

namespace skein {
namespace {

TEST(PpoState, RestoredGoesOnToTheBit) {
  for (const bool shared_trunk : {false, true}) {
    torch::manual_seed(14);
    v1::RunConfig config = SampleConfig();
    config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE);
    Ppo whole(config, SampleNetwork(false, shared_trunk), 1), first(config, SampleNetwork(false, shared_trunk), 1),
        second(config, SampleNetwork(false, shared_trunk), 99);
    for (int iteration = 0; iteration < 6; ++iteration) {
      const Batch batch = CollectEpisodes(whole, 7, 3);
      Train(whole, batch, iteration / 6.0, iteration);
      if (iteration < 3) Train(first, batch, iteration / 6.0, iteration);
      if (iteration == 2) {
        ExpectEqualStates(whole, first);
        ASSERT_TRUE(second.Restore(first.ModelState(), first.OptimizerState()).ok());
        ExpectEqualStates(whole, second);
      }
      if (iteration >= 3) {
        // Same seed as the run's: the permutations are part of what goes on.
        Ppo next(config, SampleNetwork(false, shared_trunk), 1);
        ASSERT_TRUE(next.Restore(second.ModelState(), second.OptimizerState()).ok());
        Train(next, batch, iteration / 6.0, iteration);
        ExpectEqualStates(whole, next);
        ASSERT_TRUE(second.Restore(next.ModelState(), next.OptimizerState()).ok());
      }
    }
  }
}

TEST(PpoState, StatesAreCopies) {
  torch::manual_seed(15);
  Ppo ppo(SampleConfig(), SampleNetwork(), 1);
  const auto state = ppo.ModelState();
  const torch::Tensor before = state[0].second.clone();
  Train(ppo, CollectFrom(ppo, 4, 4), 0, 0);
  EXPECT_TRUE(torch::equal(state[0].second, before));
  EXPECT_FALSE(torch::equal(ppo.ModelState()[0].second, before));
}

TEST(PpoState, RestoreRefusesAnotherNetworkAndChangesNothing) {
  Ppo ppo(SampleConfig(), SampleNetwork(), 1), untouched(SampleConfig(), SampleNetwork(), 1);
  ActorCriticOptions other = SampleNetwork();
  other.hidden = {9};
  const Ppo wider(SampleConfig(), other, 1), shared(SampleConfig(), SampleNetwork(false, true), 1);
  const auto refused = [&](const auto& model, const auto& optimizer, const std::string& name) {
    const absl::Status status = ppo.Restore(model, optimizer);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(name), std::string::npos) << status;
    ExpectEqualStates(ppo, untouched);
  };
  refused(wider.ModelState(), ppo.OptimizerState(), "policy.0.weight has shape [9, 3], want [8, 3]");
  refused(shared.ModelState(), ppo.OptimizerState(), "trunk.0.weight");
  refused(ppo.ModelState(), wider.OptimizerState(), "adam.exp_avg");
  auto model = ppo.ModelState();
  model.pop_back();
  refused(model, ppo.OptimizerState(), "return_normalizer.variance is missing");
  model = ppo.ModelState();
  model.emplace_back("more", torch::zeros({1}));
  refused(model, ppo.OptimizerState(), "more is unknown");
  auto optimizer = ppo.OptimizerState();
  optimizer.back().second = optimizer.back().second.to(torch::kFloat32);
  refused(ppo.ModelState(), optimizer, "lr has dtype Float, want Double");
}

}  // namespace
}  // namespace skein
