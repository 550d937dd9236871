// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_spec.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

std::vector<std::string> Names(const PolicySpec& spec) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : PolicyParameters(spec)) names.push_back(parameter.name);
  return names;
}

TEST(MakePolicySpec, TakesSizesFromTheEnvironmentAndTheRestFromTheConfig) {
  EnvSpec env;
  env.obs_size = 17;
  env.action_size = 6;
  env.discrete = true;
  v1::ModelConfig config;
  config.add_hidden(32);
  config.set_activation(v1::ACTIVATION_RELU);
  config.set_memory(v1::MEMORY_LSTM);
  config.set_memory_size(24);
  const PolicySpec spec = MakePolicySpec(config, env);
  EXPECT_EQ(spec.obs_size, 17);
  EXPECT_EQ(spec.head_size(), 6);
  EXPECT_TRUE(spec.discrete);
  EXPECT_EQ(spec.hidden, (std::vector<int64_t>{32}));
  EXPECT_EQ(spec.activation, ActivationKind::kRelu);
  EXPECT_EQ(spec.memory, MemoryKind::kLstm);
  EXPECT_EQ(spec.state_size(), 48);  // h and c.
  EXPECT_EQ(spec.feature_size(), 24);

  config.set_memory(v1::MEMORY_GRU);
  EXPECT_EQ(MakePolicySpec(config, env).state_size(), 24);
  config.set_memory(v1::MEMORY_NONE);
  EXPECT_EQ(MakePolicySpec(config, env).state_size(), 0);
  EXPECT_EQ(MakePolicySpec(config, env).feature_size(), 17);
}

TEST(MakePolicySpec, KnowsEveryActivation) {
  v1::ModelConfig config;
  for (const auto& [activation, kind] : {std::pair{v1::ACTIVATION_TANH, ActivationKind::kTanh},
                                         {v1::ACTIVATION_ELU, ActivationKind::kElu},
                                         {v1::ACTIVATION_RELU, ActivationKind::kRelu}}) {
    config.set_activation(activation);
    EXPECT_EQ(MakePolicySpec(config, {}).activation, kind);
  }
}

TEST(PolicyParameters, StandInTheNetworksOrder) {
  PolicySpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  spec.hidden = {5};
  EXPECT_EQ(Names(spec), (std::vector<std::string>{"policy.0.weight", "policy.0.bias", "policy.head.weight",
                                                   "policy.head.bias", "log_std"}));
  spec.discrete = true;
  spec.shared_trunk = true;
  spec.memory = MemoryKind::kGru;
  spec.memory_size = 4;
  EXPECT_EQ(Names(spec),
            (std::vector<std::string>{"memory.weight_ih", "memory.weight_hh", "memory.bias_ih", "memory.bias_hh",
                                      "trunk.0.weight", "trunk.0.bias", "policy.head.weight", "policy.head.bias"}));
  const std::vector<ParameterSpec> gru = PolicyParameters(spec);
  EXPECT_EQ(gru[0].shape, (std::vector<int64_t>{12, 3}));  // Three gates of 4 units.
  EXPECT_EQ(gru[1].shape, (std::vector<int64_t>{12, 4}));
  EXPECT_EQ(gru[4].shape, (std::vector<int64_t>{5, 4}));  // The hidden layer reads the memory.
  spec.memory = MemoryKind::kLstm;
  EXPECT_EQ(PolicyParameters(spec)[3].shape, (std::vector<int64_t>{16}));
}

}  // namespace
}  // namespace skein
