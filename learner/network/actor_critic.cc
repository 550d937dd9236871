// SPDX-License-Identifier: Apache-2.0
#include "learner/network/actor_critic.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/number/philox.h"

namespace skein {
namespace {

// Rows or columns, whichever are fewer, are orthonormal. Uniformly distributed: the factor Q of a Gaussian matrix, made
// unique by a positive diagonal of R (Mezzadri 2007).
torch::Tensor OrthogonalMatrix(int64_t rows, int64_t columns, RandomStream random) {
  const int64_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
  torch::Tensor gaussian = torch::empty({longer, shorter}, torch::kFloat64);
  double* element = gaussian.data_ptr<double>();
  for (int64_t i = 0; i < gaussian.numel(); ++i) element[i] = random.Normal();
  auto [q, r] = torch::linalg_qr(gaussian);
  torch::Tensor matrix = q * r.diagonal().sign();
  return rows < columns ? matrix.t() : matrix;
}

}  // namespace

ActorCriticOptions MakeActorCriticOptions(const v1::ModelConfig& config, const EnvSpec& spec) {
  ActorCriticOptions options;
  static_cast<PolicySpec&>(options) = MakePolicySpec(config, spec);
  const bool central = config.central_critic() && !config.shared_trunk() && spec.global_state_size > 0;
  options.critic_input_size = central ? spec.obs_size + spec.global_state_size : 0;
  options.critic_memory = options.memory != MemoryKind::kNone && config.critic_memory() == v1::CRITIC_MEMORY_SEPARATE;
  options.init_gain = config.init_gain();
  options.policy_head_scale = config.policy_head_scale();
  options.init_log_std = config.init_log_std();
  return options;
}

ActorCritic::ActorCritic(const ActorCriticOptions& options) : options_(options) {
  const int64_t critic_input = options.critic_input_size > 0 ? options.critic_input_size : options.obs_size;
  TORCH_CHECK(!options.critic_memory || (options.memory != MemoryKind::kNone && !options.shared_trunk),
              "a value function has a memory of its own beside the policy's only");
  if (options.memory != MemoryKind::kNone) memory_ = AddMemory("memory", options.obs_size);
  value_input_size_ = critic_input;
  if (options.critic_memory) {
    value_input_size_ = options.memory_size;
  } else if (options.memory != MemoryKind::kNone) {
    value_input_size_ = options.memory_size + critic_input - options.obs_size;
  }
  int64_t features = options.shared_trunk ? AddHidden("trunk", options.feature_size(), &trunk_)
                                          : AddHidden("policy", options.feature_size(), &policy_);
  AddLayer("policy.head", features, options.action_size, &policy_);
  if (!options.discrete) {
    log_std_ = AddParameter("log_std", {options.action_size});
  }
  num_policy_parameters_ = parameters_.size();
  if (options.critic_memory) critic_memory_ = AddMemory("critic_memory", critic_input);
  if (!options.shared_trunk) {
    features = AddHidden("value", value_input_size_, &value_);
  }
  AddLayer("value.head", features, 1, &value_);
}

ActorCritic::ActorCritic(const ActorCriticOptions& options, uint64_t seed) : ActorCritic(options) {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto& [name, parameter] = parameters_[i];
    if (parameter.dim() != 2) continue;
    double gain = options.init_gain;
    if (name == "policy.head.weight") gain *= options.policy_head_scale;
    if (absl::StrContains(name, "memory.")) gain = 1;
    RandomStream random(seed, RandomPurpose::kInit, i, 0);
    parameter.copy_(OrthogonalMatrix(parameter.size(0), parameter.size(1), random) * gain);
  }
  if (log_std_.defined()) {
    log_std_.fill_(options.init_log_std);
  }
}

torch::Tensor ActorCritic::AddParameter(const std::string& name, std::vector<int64_t> shape) {
  // Modules allow no dots in names.
  std::string registered = name;
  std::replace(registered.begin(), registered.end(), '.', '_');
  torch::Tensor parameter = register_parameter(registered, torch::zeros(shape, torch::kFloat32));
  parameters_.emplace_back(name, parameter);
  return parameter;
}

MemoryCell ActorCritic::AddMemory(const std::string& name, int64_t inputs) {
  const int64_t rows = (options_.memory == MemoryKind::kGru ? 3 : 4) * options_.memory_size;
  MemoryCell cell;
  cell.kind = options_.memory;
  cell.weight_ih = AddParameter(name + ".weight_ih", {rows, inputs});
  cell.weight_hh = AddParameter(name + ".weight_hh", {rows, options_.memory_size});
  cell.bias_ih = AddParameter(name + ".bias_ih", {rows});
  cell.bias_hh = AddParameter(name + ".bias_hh", {rows});
  return cell;
}

void ActorCritic::AddLayer(const std::string& name, int64_t inputs, int64_t outputs, Layers* layers) {
  torch::Tensor weight = AddParameter(absl::StrCat(name, ".weight"), {outputs, inputs});
  torch::Tensor bias = AddParameter(absl::StrCat(name, ".bias"), {outputs});
  layers->emplace_back(weight, bias);
}

int64_t ActorCritic::AddHidden(const std::string& name, int64_t inputs, Layers* layers) {
  for (size_t i = 0; i < options_.hidden.size(); ++i) {
    AddLayer(absl::StrCat(name, ".", i), inputs, options_.hidden[i], layers);
    inputs = options_.hidden[i];
  }
  return inputs;
}

torch::Tensor ActorCritic::Forward(const Layers& layers, size_t activated, torch::Tensor x) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    x = torch::linear(x, layers[i].first, layers[i].second);
    if (i >= activated) continue;
    // In place: a linear layer's backward pass does not need its output.
    switch (options_.activation) {
      case ActivationKind::kTanh:
        x.tanh_();
        break;
      case ActivationKind::kElu:
        torch::elu_(x);
        break;
      case ActivationKind::kRelu:
        x.relu_();
        break;
    }
  }
  return x;
}

torch::Tensor ActorCritic::PolicyHead(const torch::Tensor& obs) const {
  return Forward(policy_, policy_.size() - 1, Forward(trunk_, trunk_.size(), obs));
}

torch::Tensor ActorCritic::Value(const torch::Tensor& input) const {
  return Forward(value_, value_.size() - 1, Forward(trunk_, trunk_.size(), input)).squeeze(1);
}

std::pair<torch::Tensor, torch::Tensor> ActorCritic::PolicyHeadAndValue(const torch::Tensor& obs,
                                                                        const torch::Tensor& critic_input) const {
  if (!options_.shared_trunk) return {PolicyHead(obs), Value(critic_input)};
  torch::Tensor features = Forward(trunk_, trunk_.size(), obs);
  return {Forward(policy_, 0, features), Forward(value_, 0, features).squeeze(1)};
}

std::vector<std::pair<std::string, torch::Tensor>> ActorCritic::PolicyParameters() const {
  return {parameters_.begin(), parameters_.begin() + num_policy_parameters_};
}

std::vector<std::pair<std::string, torch::Tensor>> ActorCritic::AllParameters() const { return parameters_; }

}  // namespace skein
