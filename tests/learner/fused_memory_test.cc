// SPDX-License-Identifier: Apache-2.0
// The hand-written gradient through a memory is autograd's.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "learner/algorithm/ppo/fused_gradient.h"
#include "learner/algorithm/ppo/ppo_objective.h"
#include "tests/learner/memory_sample.h"
#include "tests/learner/ppo_sample.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 9;

// Samples of `sequences`, as Sequences makes them. Fills up the last steps of some where `padded`.
Minibatch RandomSequences(const ActorCritic& network, int64_t sequences, bool padded, int64_t steps = kSteps) {
  const ActorCriticOptions& options = network.options();
  Minibatch samples;
  samples["obs"] = torch::randn({sequences, steps, options.obs_size});
  samples["begins"] = torch::rand({sequences, steps}) < 0.15;
  samples["memory_state"] = torch::randn({sequences, options.state_size()});
  const int64_t C = options.critic_input_size > 0 ? options.critic_input_size : options.obs_size;
  if (options.critic_memory) {
    samples["critic_input"] = torch::randn({sequences, steps, C});
    samples["critic_memory_state"] = torch::randn({sequences, options.state_size()});
  } else if (options.critic_input_size > 0) {
    samples["global_state"] = torch::randn({sequences, steps, C - options.obs_size});
  }
  samples["action"] = options.discrete ? torch::randint(options.action_size, {sequences, steps}, torch::kInt64)
                                       : torch::randn({sequences, steps, options.action_size});
  samples["log_prob"] = -1 + 0.3 * torch::randn({sequences, steps});
  for (const char* const name : {"advantage", "old_value", "value_target"}) {
    samples[name] = torch::randn({sequences, steps});
  }
  if (padded) samples["valid"] = torch::rand({sequences, steps}) < 0.7;
  return samples;
}

void ClearGradients(const ActorCritic& network) {
  for (const auto& [name, parameter] : network.AllParameters()) {
    torch::Tensor(parameter).mutable_grad() = torch::zeros_like(parameter);
  }
}

std::vector<torch::Tensor> Gradients(const ActorCritic& network) {
  std::vector<torch::Tensor> gradients;
  for (const auto& [name, parameter] : network.AllParameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

v1::PpoConfig Config() {
  v1::PpoConfig config = SampleConfig().ppo();
  config.set_entropy_coefficient(0.01);
  config.set_value_clip(0.5);
  return config;
}

void ExpectAutogradsGradient(const ActorCriticOptions& options, bool padded, int threads) {
  torch::manual_seed(2);
  const ActorCritic network(options, 3);
  for (const auto& [name, parameter] : network.AllParameters()) {
    const torch::NoGradGuard no_grad;
    if (parameter.dim() == 1) torch::Tensor(parameter).uniform_(-0.3, 0.3);
  }
  const v1::PpoConfig config = Config();
  const Minibatch samples = RandomSequences(network, 70, padded);
  const torch::Tensor index = torch::randperm(70, torch::kInt64).narrow(0, 0, 55);
  const Minibatch chosen = samples.Select(index);
  const int64_t count = padded ? chosen["valid"].sum().item<int64_t>() : 55 * kSteps;

  ClearGradients(network);
  const PpoObjective objective(config, network, torch::kFloat32);
  const Loss::Terms want = objective.Compute(chosen, {});
  const double weight = 55.0 / static_cast<double>(count);  // The terms are sums over 55 sequences.
  (want.total * weight).backward();
  const std::vector<torch::Tensor> gradients = Gradients(network);

  ClearGradients(network);
  ASSERT_TRUE(FusedGradient::Supports(network));
  FusedGradient fused(network, threads);
  const PpoLossValues got = fused.Compute(samples, index.data_ptr<int64_t>(), 55, config, count);
  EXPECT_NEAR(got.total, want.total.item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.policy, want.stats[0].item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.value, want.stats[1].item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.entropy, want.stats[2].item<double>() * weight, 1e-5);
  const auto parameters = network.AllParameters();
  const std::vector<torch::Tensor> by_hand = Gradients(network);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(by_hand[i].allclose(gradients[i], 1e-4, 2e-6))
        << parameters[i].first << " " << (by_hand[i] - gradients[i]).abs().max().item<float>();
    EXPECT_GT(gradients[i].abs().max().item<float>(), 0) << parameters[i].first;
  }
}

TEST(FusedMemory, GradientIsAutograds) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    for (const bool padded : {false, true}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru " : "lstm ") << padded << threads);
        ExpectAutogradsGradient(MemoryNetwork(kind), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, true, /*shared_trunk=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, true, false, /*critic_memory=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, false, false, false, /*central=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, false, false, true, true), padded, threads);
        ActorCriticOptions wide = MemoryNetwork(kind);
        wide.memory_size = 32;
        ExpectAutogradsGradient(wide, padded, threads);
        wide.hidden = {};
        ExpectAutogradsGradient(wide, padded, threads);
      }
    }
  }
}

// Steps after a sequence's end, however many, change no bit of its outputs, and of the gradient only the order of sums.
TEST(FusedMemory, LongerPaddingChangesNothing) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(4);
    const ActorCritic network(MemoryNetwork(kind), 3);
    ClearGradients(network);
    const MemoryCell& cell = network.memory();
    const Minibatch samples = RandomSequences(network, 6, false, 12);
    const auto run = [&](int64_t steps) {
      std::vector<float*> gradients;
      for (const torch::Tensor& weight : {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}) {
        gradients.push_back(weight.grad().data_ptr<float>());
      }
      FusedMemory memory(cell, gradients);
      memory.Pack();
      const torch::Tensor obs = samples["obs"].narrow(1, 0, steps).contiguous();
      const torch::Tensor begins = samples["begins"].narrow(1, 0, steps).contiguous();
      const std::vector<int64_t> index = {4, 0, 5, 1};
      memory.Forward(obs.data_ptr<float>(), begins.data_ptr<bool>(), samples["memory_state"].data_ptr<float>(),
                     index.data(), 4, steps);
      return std::vector<float>(memory.output(), memory.output() + 7 * 4 * memory.stride());
    };
    EXPECT_EQ(run(7), run(12));
    EXPECT_EQ(run(7), run(8));
  }
}

// What the learner computes is what actors compute, up to rounding; an Adam step with it goes the same way.
TEST(FusedMemory, UpdatesEqualThoseOfAutograd) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(6);
    v1::RunConfig config = SampleConfig();
    config.mutable_ppo()->set_minibatch_size(24);
    config.mutable_ppo()->set_adam_epsilon(1e-3);
    config.mutable_ppo()->set_sequence_length(5);
    config.mutable_ppo()->set_burn_in(1);  // Autograd: the hand-written gradient has no burn-in.
    const ActorCriticOptions network = MemoryNetwork(kind, true, false, true, true);
    Ppo by_autograd(config, network, 5);
    config.mutable_ppo()->set_burn_in(0);
    Ppo by_hand(config, network, 5);
    // With one epoch of one minibatch, burn-in runs with the weights that the states were made with: it changes
    // nothing.
    for (Ppo* const ppo : {&by_autograd, &by_hand}) {
      v1::RunConfig once = config;
      once.mutable_ppo()->set_burn_in(ppo == &by_autograd ? 1 : 0);
      once.mutable_ppo()->set_epochs(1);
      once.mutable_ppo()->set_minibatch_size(100000);
      ppo->SetSettings(once);
    }
    const Batch batch = CollectRemembering(by_hand, 13, 6, 3);
    Train(by_autograd, batch, 0, 0);
    Train(by_hand, batch, 0, 0);
    EXPECT_LT(LargestDifference(by_hand.ModelState(), by_autograd.ModelState()), 1e-5);
  }
}

}  // namespace
}  // namespace skein
