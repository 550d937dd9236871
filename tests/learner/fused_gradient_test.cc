// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/fused_gradient.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "learner/network/distribution.h"
#include "learner/optimize/flat_adam.h"

namespace skein {
namespace {

struct Case {
  ActivationKind activation;
  bool discrete;
  double value_clip;
  std::vector<int64_t> hidden;
  bool shared_trunk = false;
  int64_t critic_input_size = 0;
};

ActorCriticOptions Options(const Case& c) {
  ActorCriticOptions options;
  options.obs_size = 5;
  options.action_size = 3;
  options.discrete = c.discrete;
  options.hidden = c.hidden;
  options.activation = c.activation;
  options.shared_trunk = c.shared_trunk;
  options.critic_input_size = c.critic_input_size;
  options.policy_head_scale = 1;
  return options;
}

v1::PpoConfig Config(double value_clip) {
  v1::PpoConfig config;
  config.set_clip(0.2);
  config.set_value_clip(value_clip);
  config.set_value_coefficient(0.7);
  config.set_entropy_coefficient(0.05);
  return config;
}

std::vector<torch::Tensor> Parameters(const ActorCritic& network) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, parameter] : network.AllParameters()) tensors.push_back(parameter);
  return tensors;
}

torch::Tensor LogProb(const ActorCritic& network, const torch::Tensor& head, const torch::Tensor& action) {
  return network.options().discrete ? CategoricalLogProb(head, action)
                                    : GaussianLogProb(head, network.log_std(), action);
}

// Ratios spread widely around 1, so that every branch of the clipping is taken.
Minibatch RandomMinibatch(ActorCritic& network, int64_t rows) {
  const torch::NoGradGuard no_grad;
  const ActorCriticOptions& options = network.options();
  Minibatch batch;
  batch["obs"] = torch::randn({rows, options.obs_size});
  batch["action"] = options.discrete ? torch::randint(options.action_size, {rows}, torch::kInt64)
                                     : torch::randn({rows, options.action_size});
  batch["log_prob"] = LogProb(network, network.PolicyHead(batch["obs"]), batch["action"]) + 0.3 * torch::randn({rows});
  batch["advantage"] = torch::randn({rows});
  if (options.critic_input_size > 0) batch["critic_input"] = torch::randn({rows, options.critic_input_size});
  batch["old_value"] = network.Value(batch.value_input()) + torch::randn({rows});
  batch["value_target"] = torch::randn({rows});
  return batch;
}

TEST(FusedGradient, EqualsAutograd) {
  torch::manual_seed(8);
  for (const Case& c :
       {Case{ActivationKind::kTanh, false, 0, {8, 7}}, Case{ActivationKind::kTanh, true, 0, {8, 7}},
        Case{ActivationKind::kElu, false, 0.5, {6}}, Case{ActivationKind::kRelu, true, 0.5, {6, 5, 4}},
        Case{ActivationKind::kTanh, false, 0.5, {}}, Case{ActivationKind::kElu, false, 0, {32, 16}, true},
        Case{ActivationKind::kRelu, true, 0.5, {7}, true}, Case{ActivationKind::kTanh, false, 0, {}, true},
        Case{ActivationKind::kTanh, true, 0.5, {8, 7}, false, 19},
        Case{ActivationKind::kElu, false, 0, {}, false, 9}}) {
    ActorCritic network(Options(c), 1);
    FlatAdam flat(Parameters(network), 1e-8);
    FusedGradient fused(network);
    // 150 rows go through in two parts.
    for (const int64_t rows : {33, 1, 150}) {
      const Minibatch samples = RandomMinibatch(network, 200);
      const torch::Tensor index = torch::randperm(200).narrow(0, 0, rows);
      const Minibatch batch = samples.Select(index);
      const v1::PpoConfig config = Config(c.value_clip);
      flat.gradient().zero_();
      const PpoLossValues got = fused.Compute(samples, index.data_ptr<int64_t>(), rows, config);
      const torch::Tensor got_gradient = flat.gradient().clone();
      EXPECT_TRUE(torch::allclose(fused.Values(batch.value_input()), network.Value(batch.value_input()), 1e-4, 1e-6));
      EXPECT_TRUE(torch::allclose(fused.PolicyHead(batch["obs"]), network.PolicyHead(batch["obs"]), 1e-4, 1e-6));

      flat.gradient().zero_();
      const auto [head, value] = network.PolicyHeadAndValue(batch["obs"], batch.value_input());
      const torch::Tensor entropy = c.discrete ? CategoricalEntropy(head) : GaussianEntropy(network.log_std());
      const LossTerms want = PpoLoss(LogProb(network, head, batch["action"]), batch["log_prob"], batch["advantage"],
                                     value, batch["old_value"], batch["value_target"], entropy, config);
      want.total.backward();
      EXPECT_TRUE(torch::allclose(got_gradient, flat.gradient(), 1e-4, 3e-6))
          << (got_gradient - flat.gradient()).abs().max();
      EXPECT_NEAR(got.total, want.total.item<double>(), 1e-5);
      EXPECT_NEAR(got.policy, want.policy.item<double>(), 1e-5);
      EXPECT_NEAR(got.value, want.value.item<double>(), 1e-5);
      EXPECT_NEAR(got.entropy, want.entropy.item<double>(), 1e-5);
      EXPECT_NEAR(got.kl, want.kl.item<double>(), 1e-5);
      EXPECT_NEAR(got.clip_fraction, want.clip_fraction.item<double>(), 1e-6);
    }
  }
}

TEST(FusedGradient, AFalseLogProbabilityPushesNothing) {
  torch::manual_seed(9);
  for (const bool discrete : {false, true}) {
    ActorCritic network(Options({ActivationKind::kTanh, discrete, 0, {8, 7}}), 1);
    FlatAdam flat(Parameters(network), 1e-8);
    FusedGradient fused(network);
    const torch::Tensor index = torch::arange(20);
    const auto gradient = [&](const Minibatch& batch) {
      flat.gradient().zero_();
      const PpoLossValues values = fused.Compute(batch, index.data_ptr<int64_t>(), 20, Config(0));
      EXPECT_TRUE(std::isfinite(values.total));
      return flat.gradient().clone();
    };
    Minibatch lies = RandomMinibatch(network, 20), idle = lies;
    lies["log_prob"] = lies["log_prob"].clone();
    lies["log_prob"].slice(0, 0, 5).fill_(-1e6);
    lies["log_prob"].slice(0, 5, 10).fill_(1e6);
    // Without an advantage there is no push either.
    idle["advantage"] = idle["advantage"].clone();
    idle["advantage"].slice(0, 0, 10).zero_();
    EXPECT_TRUE(torch::equal(gradient(lies), gradient(idle)));
  }
}

TEST(FusedGradient, FollowsParametersThatChange) {
  torch::manual_seed(9);
  ActorCritic network(Options({ActivationKind::kTanh, false, 0, {4}}), 1);
  FlatAdam flat(Parameters(network), 1e-8);
  FusedGradient fused(network);
  const Minibatch batch = RandomMinibatch(network, 16);
  const torch::Tensor all = torch::arange(16);
  const auto compute = [&] { return fused.Compute(batch, all.data_ptr<int64_t>(), 16, Config(0)).total; };
  const double before = compute();
  for (int i = 0; i < 20; ++i) {
    flat.Step(0.003, 1.0);
    flat.gradient().zero_();
    compute();
  }
  EXPECT_LT(compute(), before);
}

// Up to rounding the same for any number of threads, and with the same number the same bits. Forward passes are the
// same to the bit always.
TEST(FusedGradient, ThreadsShareTheRows) {
  for (const bool shared : {false, true}) {
    for (const bool discrete : {false, true}) {
      torch::manual_seed(11);
      ActorCritic network(Options({ActivationKind::kTanh, discrete, 0.3, {20, 16}, shared}), 1);
      FlatAdam flat(Parameters(network), 1e-8);
      FusedGradient alone(network);
      for (const int64_t size : {0, 1, 96, 97, 200, 1000}) {
        const Minibatch batch = RandomMinibatch(network, std::max<int64_t>(size, 1));
        const torch::Tensor all = torch::randperm(std::max<int64_t>(size, 1));
        const auto compute = [&](FusedGradient& fused) {
          flat.gradient().fill_(0.5);  // Adds to what is there.
          return fused.Compute(batch, all.data_ptr<int64_t>(), size, Config(0.3), 1000);
        };
        const PpoLossValues want = compute(alone);
        const torch::Tensor want_gradient = flat.gradient().clone();
        for (const int threads : {2, 3, 8}) {
          FusedGradient fused(network, threads);
          for (int repeat = 0; repeat < 3; ++repeat) {
            const PpoLossValues got = compute(fused);
            EXPECT_NEAR(got.total, want.total, 1e-6);
            EXPECT_NEAR(got.kl, want.kl, 1e-6);
            EXPECT_TRUE(torch::allclose(flat.gradient(), want_gradient, 1e-4, 1e-6));
            const torch::Tensor first = flat.gradient().clone();
            compute(fused);
            EXPECT_TRUE(torch::equal(flat.gradient(), first));
          }
          EXPECT_TRUE(torch::equal(fused.Values(batch.value_input()), alone.Values(batch.value_input())));
          EXPECT_TRUE(torch::equal(fused.PolicyHead(batch["obs"]), alone.PolicyHead(batch["obs"])));
        }
      }
    }
  }
}

TEST(FusedGradient, LeavesWideNetworksToAutograd) {
  EXPECT_TRUE(FusedGradient::Supports(ActorCritic(Options({ActivationKind::kTanh, false, 0, {512}}), 1)));
  EXPECT_FALSE(FusedGradient::Supports(ActorCritic(Options({ActivationKind::kTanh, false, 0, {513}}), 1)));
}

// In bits: whatever ran before leaves nothing behind.
TEST(FusedGradient, RepeatsItself) {
  torch::manual_seed(10);
  ActorCritic network(Options({ActivationKind::kElu, false, 0, {20, 16}, true}), 1);
  FlatAdam flat(Parameters(network), 1e-8);
  FusedGradient fused(network), other(network);
  const Minibatch batch = RandomMinibatch(network, 100);
  const torch::Tensor all = torch::arange(100);
  fused.Compute(batch, all.data_ptr<int64_t>(), 70, Config(0));
  flat.gradient().zero_();
  const double first = fused.Compute(batch, all.data_ptr<int64_t>(), 100, Config(0)).total;
  const torch::Tensor want = flat.gradient().clone();
  flat.gradient().zero_();
  EXPECT_EQ(other.Compute(batch, all.data_ptr<int64_t>(), 100, Config(0)).total, first);
  EXPECT_TRUE(torch::equal(flat.gradient(), want));
}

}  // namespace
}  // namespace skein
