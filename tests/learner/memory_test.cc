// SPDX-License-Identifier: Apache-2.0
// Networks with a memory: what their policies do is what PyTorch's own cells do.
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>

#include "learner/network/policy_snapshot.h"
#include "policy/snapshot.h"
#include "tests/learner/torch_policy.h"

namespace skein {
namespace {

ActorCriticOptions Options(MemoryKind memory) {
  ActorCriticOptions options;
  options.obs_size = 3;
  options.action_size = 2;
  options.memory = memory;
  options.memory_size = 21;
  options.hidden = {8};
  options.policy_head_scale = 1;
  return options;
}

std::map<std::string, torch::Tensor> Parameters(const ActorCritic& network) {
  const auto parameters = network.PolicyParameters();
  return {parameters.begin(), parameters.end()};
}

template <typename Cell>
void Fill(const std::map<std::string, torch::Tensor>& parameters, Cell* cell) {
  (*cell)->weight_ih.copy_(parameters.at("memory.weight_ih"));
  (*cell)->weight_hh.copy_(parameters.at("memory.weight_hh"));
  (*cell)->bias_ih.copy_(parameters.at("memory.bias_ih"));
  (*cell)->bias_hh.copy_(parameters.at("memory.bias_hh"));
}

TEST(Memory, ActsAsPyTorchsCells) {
  const torch::NoGradGuard no_grad;
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const ActorCriticOptions options = Options(memory);
    const ActorCritic network(options, 5);
    for (auto& [name, parameter] : Parameters(network)) {
      if (parameter.dim() == 1) torch::Tensor(parameter).uniform_(-0.5, 0.5);  // Biases begin as zeros.
    }
    const auto parameters = Parameters(network);
    const ObsScale scale = {torch::tensor({1.0f, -2.0f, 0.5f}), torch::tensor({2.0f, 0.25f, 1.0f})};
    const auto policy = ReadSnapshot(MakeSnapshot(7, network, scale), options);
    ASSERT_TRUE(policy.ok()) << policy.status();

    torch::nn::GRUCell gru(3, 21);
    torch::nn::LSTMCell lstm(3, 21);
    if (memory == MemoryKind::kGru) Fill(parameters, &gru);
    if (memory == MemoryKind::kLstm) Fill(parameters, &lstm);
    constexpr int64_t kRows = 4;
    torch::Tensor h = torch::zeros({kRows, 21}), c = torch::zeros({kRows, 21});
    std::vector<float> state(static_cast<size_t>(kRows * options.state_size()));
    for (int step = 0; step < 12; ++step) {
      const torch::Tensor obs = (torch::arange(kRows * 3, torch::kFloat32) + step).sin().view({kRows, 3});
      torch::Tensor head = torch::empty({kRows, 2});
      (*policy)->Act(obs.data_ptr<float>(), state.data(), kRows, head.data_ptr<float>(), state.data());
      if (memory == MemoryKind::kGru) {
        h = gru->forward(scale.Apply(obs), h);
      } else {
        std::tie(h, c) = lstm->forward(scale.Apply(obs), std::make_tuple(h, c));
      }
      const torch::Tensor features =
          torch::linear(h, parameters.at("policy.0.weight"), parameters.at("policy.0.bias")).tanh();
      const torch::Tensor want =
          torch::linear(features, parameters.at("policy.head.weight"), parameters.at("policy.head.bias"));
      ASSERT_TRUE(head.allclose(want, 1e-5, 2e-6)) << head << want;
      const torch::Tensor want_state = memory == MemoryKind::kGru ? h : torch::cat({h, c}, 1);
      ASSERT_TRUE(torch::tensor(state).view_as(want_state).allclose(want_state, 1e-5, 2e-6));
    }
  }
}

TEST(Memory, ItsParametersComeFirstAndBeginOrthogonal) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const ActorCritic network(Options(memory), 5), same(Options(memory), 5), other(Options(memory), 6);
    const auto parameters = network.PolicyParameters();
    const auto want = PolicyParameters(Options(memory));
    ASSERT_EQ(parameters.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(parameters[i].first, want[i].name);
      EXPECT_EQ(parameters[i].second.sizes(), torch::IntArrayRef(want[i].shape));
    }
    const torch::Tensor weight = parameters[1].second;  // [G H, H], gain 1.
    EXPECT_TRUE(weight.t().matmul(weight).allclose(torch::eye(21), 1e-4, 1e-5));
    EXPECT_TRUE(weight.equal(same.PolicyParameters()[1].second));
    EXPECT_FALSE(weight.equal(other.PolicyParameters()[1].second));
    EXPECT_EQ(parameters[2].second.abs().max().item<float>(), 0);
  }
}

TEST(Memory, TheNetworkItselfDoesNotActWithOne) {
  const ActorCritic network(Options(MemoryKind::kGru), 5);
  EXPECT_THROW(network.PolicyHead(torch::zeros({1, 3})), c10::Error);
  EXPECT_EQ(network.Value(torch::zeros({2, 3})).size(0), 2);  // The value function has no memory.
}

}  // namespace
}  // namespace skein
