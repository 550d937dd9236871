// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_spec.h"

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

ActivationKind ToActivationKind(v1::Activation activation) {
  switch (activation) {
    case v1::ACTIVATION_ELU:
      return ActivationKind::kElu;
    case v1::ACTIVATION_RELU:
      return ActivationKind::kRelu;
    default:
      return ActivationKind::kTanh;
  }
}

MemoryKind ToMemoryKind(v1::Memory memory) {
  switch (memory) {
    case v1::MEMORY_GRU:
      return MemoryKind::kGru;
    case v1::MEMORY_LSTM:
      return MemoryKind::kLstm;
    default:
      return MemoryKind::kNone;
  }
}

void AddLayer(const std::string& name, int64_t inputs, int64_t outputs, std::vector<ParameterSpec>* parameters) {
  parameters->push_back({name + ".weight", {outputs, inputs}});
  parameters->push_back({name + ".bias", {outputs}});
}

}  // namespace

PolicySpec MakePolicySpec(const v1::ModelConfig& config, const EnvSpec& env) {
  PolicySpec spec;
  spec.obs_size = env.obs_size;
  spec.action_size = env.action_size;
  spec.discrete = env.discrete;
  spec.memory = ToMemoryKind(config.memory());
  spec.memory_size = spec.memory == MemoryKind::kNone ? 0 : config.memory_size();
  if (config.policy() == v1::POLICY_KIND_LINEAR) {
    spec.hidden.clear();
  } else {
    spec.hidden.assign(config.hidden().begin(), config.hidden().end());
  }
  spec.activation = ToActivationKind(config.activation());
  spec.shared_trunk = config.shared_trunk();
  return spec;
}

std::vector<ParameterSpec> PolicyParameters(const PolicySpec& spec) {
  std::vector<ParameterSpec> parameters;
  if (spec.memory != MemoryKind::kNone) {
    const int64_t rows = (spec.memory == MemoryKind::kGru ? 3 : 4) * spec.memory_size;
    parameters = {{"memory.weight_ih", {rows, spec.obs_size}},
                  {"memory.weight_hh", {rows, spec.memory_size}},
                  {"memory.bias_ih", {rows}},
                  {"memory.bias_hh", {rows}}};
  }
  int64_t inputs = spec.feature_size();
  for (size_t i = 0; i < spec.hidden.size(); ++i) {
    AddLayer(absl::StrCat(spec.shared_trunk ? "trunk." : "policy.", i), inputs, spec.hidden[i], &parameters);
    inputs = spec.hidden[i];
  }
  AddLayer("policy.head", inputs, spec.head_size(), &parameters);
  if (!spec.discrete) parameters.push_back({"log_std", {spec.action_size}});
  return parameters;
}

}  // namespace skein
