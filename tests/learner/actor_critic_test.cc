// SPDX-License-Identifier: Apache-2.0
#include "learner/network/actor_critic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/learner/finite_difference.h"

namespace skein {
namespace {

using testing::ElementsAre;
using Matrix = std::vector<std::vector<double>>;

ActorCriticOptions SmallOptions() {
  ActorCriticOptions options;
  options.obs_size = 3;
  options.action_size = 2;
  options.hidden = {5, 4};
  options.policy_head_scale = 1;
  return options;
}

torch::Tensor SomeInput(int64_t rows, int64_t columns) {
  return (torch::arange(rows * columns, torch::kFloat32) * 1.3).sin().view({rows, columns});
}

std::vector<std::string> Names(const std::vector<std::pair<std::string, torch::Tensor>>& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) names.push_back(name);
  return names;
}

std::map<std::string, torch::Tensor> ByName(const ActorCritic& network) {
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& [name, tensor] : network.AllParameters()) parameters[name] = tensor;
  return parameters;
}

// Makes biases count in the comparisons.
void FillBiases(const ActorCritic& network) {
  torch::NoGradGuard no_grad;
  for (auto [name, tensor] : network.AllParameters()) {
    if (absl::EndsWith(name, ".bias")) tensor.copy_(torch::arange(tensor.numel()) * 0.1 - 0.15);
  }
}

double Activate(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kElu:
      return x > 0 ? x : std::exp(x) - 1;
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
  }
  return NAN;
}

Matrix ToMatrix(const torch::Tensor& tensor) {
  Matrix matrix(tensor.size(0), std::vector<double>(tensor.size(1)));
  for (int64_t i = 0; i < tensor.size(0); ++i) {
    for (int64_t j = 0; j < tensor.size(1); ++j) matrix[i][j] = tensor[i][j].item<double>();
  }
  return matrix;
}

// x W^T + b, element by element.
Matrix NaiveLinear(const Matrix& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  Matrix y(x.size(), std::vector<double>(weight.size(0)));
  for (size_t row = 0; row < x.size(); ++row) {
    for (int64_t out = 0; out < weight.size(0); ++out) {
      y[row][out] = bias[out].item<double>();
      for (int64_t in = 0; in < weight.size(1); ++in) y[row][out] += weight[out][in].item<double>() * x[row][in];
    }
  }
  return y;
}

Matrix NaiveForward(const ActorCritic& network, const std::string& hidden, const std::string& head,
                    const torch::Tensor& input) {
  const std::map<std::string, torch::Tensor> parameters = ByName(network);
  Matrix x = ToMatrix(input);
  for (size_t i = 0; i < network.options().hidden.size(); ++i) {
    const std::string layer = absl::StrCat(hidden, ".", i);
    x = NaiveLinear(x, parameters.at(layer + ".weight"), parameters.at(layer + ".bias"));
    for (auto& row : x) {
      for (double& value : row) value = Activate(network.options().activation, value);
    }
  }
  return NaiveLinear(x, parameters.at(head + ".weight"), parameters.at(head + ".bias"));
}

void ExpectClose(const torch::Tensor& got, const Matrix& want) {
  ASSERT_EQ(got.size(0), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t j = 0; j < want[i].size(); ++j) {
      const torch::Tensor row = got[i];
      EXPECT_NEAR((row.dim() == 0 ? row : row[j]).item<double>(), want[i][j], 1e-5);
    }
  }
}

TEST(ActorCritic, SeparateNetworksHaveTheDocumentedParameters) {
  const ActorCritic network(SmallOptions(), 1);
  EXPECT_THAT(Names(network.AllParameters()),
              ElementsAre("policy.0.weight", "policy.0.bias", "policy.1.weight", "policy.1.bias", "policy.head.weight",
                          "policy.head.bias", "log_std", "value.0.weight", "value.0.bias", "value.1.weight",
                          "value.1.bias", "value.head.weight", "value.head.bias"));
  EXPECT_THAT(Names(network.PolicyParameters()),
              ElementsAre("policy.0.weight", "policy.0.bias", "policy.1.weight", "policy.1.bias", "policy.head.weight",
                          "policy.head.bias", "log_std"));
  EXPECT_EQ(ByName(network).at("policy.1.weight").sizes(), at::IntArrayRef({4, 5}));
  EXPECT_EQ(ByName(network).at("value.head.weight").sizes(), at::IntArrayRef({1, 4}));
}

TEST(ActorCritic, ASharedTrunkBelongsToThePolicy) {
  ActorCriticOptions options = SmallOptions();
  options.shared_trunk = true;
  const ActorCritic network(options, 1);
  EXPECT_THAT(Names(network.AllParameters()),
              ElementsAre("trunk.0.weight", "trunk.0.bias", "trunk.1.weight", "trunk.1.bias", "policy.head.weight",
                          "policy.head.bias", "log_std", "value.head.weight", "value.head.bias"));
  EXPECT_EQ(network.PolicyParameters().size(), 7u);
}

TEST(ActorCritic, ADiscretePolicyHasNoLogStd) {
  ActorCriticOptions options = SmallOptions();
  options.discrete = true;
  const ActorCritic network(options, 1);
  EXPECT_FALSE(network.log_std().defined());
  EXPECT_EQ(ByName(network).count("log_std"), 0u);
}

TEST(ActorCritic, TheModuleSeesEveryParameterInTheSameOrder) {
  ActorCritic network(SmallOptions(), 1);
  const std::vector<torch::Tensor> of_module = network.parameters();
  const auto named = network.AllParameters();
  ASSERT_EQ(of_module.size(), named.size());
  for (size_t i = 0; i < named.size(); ++i) {
    EXPECT_TRUE(of_module[i].is_same(named[i].second)) << named[i].first;
    EXPECT_TRUE(named[i].second.requires_grad()) << named[i].first;
  }
}

TEST(ActorCritic, ForwardMatchesNaiveLoopsForEveryActivation) {
  for (const ActivationKind kind : {ActivationKind::kTanh, ActivationKind::kElu, ActivationKind::kRelu}) {
    ActorCriticOptions options = SmallOptions();
    options.activation = kind;
    options.critic_input_size = 6;
    const ActorCritic network(options, 1);
    FillBiases(network);
    const torch::Tensor obs = SomeInput(4, 3), state = SomeInput(4, 6);
    const Matrix want_head = NaiveForward(network, "policy", "policy.head", obs);
    const Matrix want_value = NaiveForward(network, "value", "value.head", state);
    ExpectClose(network.PolicyHead(obs), want_head);
    ExpectClose(network.Value(state), want_value);
    EXPECT_EQ(network.Value(state).sizes(), at::IntArrayRef({4}));
    const auto [head, value] = network.PolicyHeadAndValue(obs, state);
    ExpectClose(head, want_head);
    ExpectClose(value, want_value);
  }
}

TEST(ActorCritic, ForwardMatchesNaiveLoopsWithASharedTrunk) {
  ActorCriticOptions options = SmallOptions();
  options.shared_trunk = true;
  const ActorCritic network(options, 1);
  FillBiases(network);
  const torch::Tensor obs = SomeInput(4, 3);
  const Matrix want_head = NaiveForward(network, "trunk", "policy.head", obs);
  const Matrix want_value = NaiveForward(network, "trunk", "value.head", obs);
  ExpectClose(network.PolicyHead(obs), want_head);
  ExpectClose(network.Value(obs), want_value);
  const auto [head, value] = network.PolicyHeadAndValue(obs, obs);
  ExpectClose(head, want_head);
  ExpectClose(value, want_value);
}

TEST(ActorCritic, WorksWithoutHiddenLayersAndWithoutRows) {
  for (const bool shared : {false, true}) {
    ActorCriticOptions options = SmallOptions();
    options.hidden = {};
    options.shared_trunk = shared;
    const ActorCritic network(options, 1);
    const torch::Tensor obs = SomeInput(2, 3), kept = obs.clone();
    ExpectClose(network.PolicyHead(obs), NaiveForward(network, "", "policy.head", obs));
    EXPECT_TRUE(obs.equal(kept));
    EXPECT_EQ(network.Value(torch::zeros({0, 3})).sizes(), at::IntArrayRef({0}));
  }
}

TEST(ActorCritic, HasTheGradientsOfItsDifferences) {
  for (const bool shared : {false, true}) {
    for (const ActivationKind kind : {ActivationKind::kTanh, ActivationKind::kElu, ActivationKind::kRelu}) {
      ActorCriticOptions options = SmallOptions();
      options.shared_trunk = shared;
      options.activation = kind;
      ActorCritic network(options, 1);
      FillBiases(network);
      network.to(torch::kFloat64);
      const torch::Tensor obs = SomeInput(4, 3).to(torch::kFloat64);
      const auto loss = [&] {
        const auto [head, value] = network.PolicyHeadAndValue(obs, obs);
        return head.square().sum() + (value * obs.select(1, 0)).sum() + network.log_std().square().sum();
      };
      for (const auto& [name, parameter] : network.AllParameters()) {
        ExpectGradientMatchesDifferences(loss, parameter, name);
      }
    }
  }
}

TEST(ActorCritic, InitialWeightsAreOrthogonalTimesTheGain) {
  ActorCriticOptions options = SmallOptions();
  options.hidden = {7, 7, 4};  // More rows than columns, square, fewer.
  options.init_gain = 1.5;
  options.policy_head_scale = 0.1;
  const ActorCritic network(options, 3);
  for (const auto& [name, tensor] : network.AllParameters()) {
    if (!absl::EndsWith(name, ".weight")) continue;
    // Of W [rows, columns] the rows are orthogonal of length g if there are at most as many as columns, else the
    // columns.
    const torch::Tensor w = tensor.detach().to(torch::kFloat64);
    const bool wide = w.size(0) <= w.size(1);
    const torch::Tensor product = wide ? w.matmul(w.t()) : w.t().matmul(w);
    const double gain = name == "policy.head.weight" ? 0.15 : 1.5;
    EXPECT_TRUE(product.allclose(gain * gain * torch::eye(product.size(0), torch::kFloat64), 0, 1e-6)) << name;
  }
}

TEST(ActorCritic, InitialBiasesAreZeroAndLogStdIsAsConfigured) {
  ActorCriticOptions options = SmallOptions();
  options.init_log_std = -0.75;
  const ActorCritic network(options, 3);
  for (const auto& [name, tensor] : network.AllParameters()) {
    if (absl::EndsWith(name, ".bias")) {
      EXPECT_EQ(tensor.count_nonzero().item<int64_t>(), 0) << name;
    }
  }
  EXPECT_TRUE(network.log_std().detach().equal(torch::full({2}, -0.75)));
}

TEST(ActorCritic, ASeedGivesTheSameWeightsAndAnotherSeedOthers) {
  const ActorCritic a(SmallOptions(), 5), b(SmallOptions(), 5), c(SmallOptions(), 6);
  for (const auto& [name, tensor] : a.AllParameters()) {
    EXPECT_TRUE(tensor.equal(ByName(b).at(name))) << name;
    if (absl::EndsWith(name, ".weight")) {
      EXPECT_FALSE(tensor.equal(ByName(c).at(name))) << name;
    }
  }
}

TEST(ActorCritic, LayersOfOneShapeGetDifferentWeights) {
  const std::map<std::string, torch::Tensor> parameters = ByName(ActorCritic(SmallOptions(), 5));
  EXPECT_FALSE(parameters.at("policy.0.weight").equal(parameters.at("value.0.weight")));
}

TEST(ActorCritic, WithoutASeedEveryParameterIsZero) {
  for (const auto& [name, tensor] : ActorCritic(SmallOptions()).AllParameters()) {
    EXPECT_EQ(tensor.count_nonzero().item<int64_t>(), 0) << name;
  }
}

}  // namespace
}  // namespace skein
