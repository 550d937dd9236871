// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <torch/types.h>
#include <torch/utils.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/number/tensor_packing.h"
#include "learner/network/tensor_codec.h"
#include "policy/dense_kernels.h"

namespace skein {
namespace {

using NamedTensor = std::pair<std::string, torch::Tensor>;

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

// The tensors of a snapshot by name, in order.
std::vector<NamedTensor> SnapshotTensors(const ActorCritic& network, const ObsScale& scale) {
  std::vector<NamedTensor> tensors = network.PolicyParameters();
  tensors.emplace_back("obs_normalizer.mean", scale.mean);
  tensors.emplace_back("obs_normalizer.inv_std", scale.inv_std);
  return tensors;
}

bool AllFinite(const torch::Tensor& tensor) {
  const float* values = tensor.data_ptr<float>();
  return std::all_of(values, values + tensor.numel(), [](float value) { return std::isfinite(value); });
}

// Names, order, dtypes and shapes.
absl::Status CheckLayout(const v1::PolicySnapshot& snapshot, const std::vector<NamedTensor>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    const auto& [name, tensor] = want[i];
    const std::string field = absl::StrCat("tensors[", i, "] ", name);
    if (static_cast<int>(i) >= snapshot.tensors_size())
      return absl::InvalidArgumentError(absl::StrCat(field, ": missing"));
    const v1::Tensor& wire = snapshot.tensors(i);
    if (wire.name() != name) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": missing, got \"", wire.name().substr(0, 128), "\""));
    }
    const bool narrow = wire.dtype() == v1::DATA_TYPE_BFLOAT16;
    const absl::Status status =
        CheckTensor(wire, field, narrow ? torch::kBFloat16 : torch::kFloat32, tensor.sizes().vec());
    if (!status.ok()) return status;
  }
  if (static_cast<size_t>(snapshot.tensors_size()) > want.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensors[", want.size(), "]: superfluous, got ",
                                                   snapshot.tensors_size(), " tensors, want ", want.size()));
  }
  return absl::OkStatus();
}

}  // namespace

ActorCriticOptions MakeActorCriticOptions(const v1::ModelConfig& config, const EnvSpec& spec) {
  ActorCriticOptions options;
  options.obs_size = spec.obs_size;
  options.action_size = spec.action_size;
  options.discrete = spec.discrete;
  const bool central = config.central_critic() && !config.shared_trunk() && spec.global_state_size > 0;
  options.critic_input_size = central ? spec.obs_size + spec.global_state_size : 0;
  options.hidden.assign(config.hidden().begin(), config.hidden().end());
  options.activation = ToActivationKind(config.activation());
  options.shared_trunk = config.shared_trunk();
  options.init_gain = config.init_gain();
  options.policy_head_scale = config.policy_head_scale();
  options.init_log_std = config.init_log_std();
  return options;
}

Policy::Policy(uint64_t version, std::shared_ptr<ActorCritic> network, ObsScale scale)
    : version_(version), network_(std::move(network)), scale_(std::move(scale)) {
  const std::vector<NamedTensor> parameters = network_->PolicyParameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!absl::EndsWith(parameters[i].first, ".weight")) continue;  // Its bias follows.
    const torch::Tensor &weight = parameters[i].second, &bias = parameters[i + 1].second;
    layers_.emplace_back(weight.data_ptr<float>(), bias.data_ptr<float>(), weight.size(1), weight.size(0));
  }
}

absl::StatusOr<std::shared_ptr<const Policy>> Policy::FromSnapshot(const v1::PolicySnapshot& snapshot,
                                                                   const ActorCriticOptions& options) {
  torch::NoGradGuard no_grad;
  auto network = std::make_shared<ActorCritic>(options);
  ObsScale scale = ObsScale::Identity(options.obs_size);
  std::vector<NamedTensor> tensors = SnapshotTensors(*network, scale);
  if (absl::Status status = CheckLayout(snapshot, tensors); !status.ok()) return status;
  if (const uint64_t digest = SnapshotDigest(snapshot); digest != snapshot.digest()) {
    return absl::DataLossError(absl::StrCat("policy version ", snapshot.version(), ": got digest ",
                                            absl::Hex(digest, absl::kZeroPad16), ", want ",
                                            absl::Hex(snapshot.digest(), absl::kZeroPad16)));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto& [name, tensor] = tensors[i];
    const std::string field = absl::StrCat("tensors[", i, "] ", name);
    const absl::StatusOr<torch::Tensor> values = DecodeTensor(snapshot.tensors(i), field);
    if (!values.ok()) return values.status();
    tensor.copy_(*values);
    if (!AllFinite(tensor)) return absl::InvalidArgumentError(absl::StrCat(field, ": has a value that is not finite"));
    tensor.requires_grad_(false);
  }
  return std::make_shared<const Policy>(snapshot.version(), std::move(network), std::move(scale));
}

torch::Tensor Policy::Head(const torch::Tensor& raw_obs) const {
  c10::InferenceMode inference;
  const torch::Tensor in = raw_obs.contiguous();
  TORCH_CHECK(in.dim() == 2 && in.size(1) == scale_.mean.size(0) && in.scalar_type() == torch::kFloat32, "obs: got ",
              in.scalar_type(), " of shape ", in.sizes(), ", want Float [B, ", scale_.mean.size(0), "]");
  torch::Tensor head = torch::empty({in.size(0), head_size()});
  Head(in.data_ptr<float>(), in.size(0), head.data_ptr<float>());
  return head;
}

void Policy::Head(const float* raw_obs, int64_t rows, float* head) const {
  thread_local AlignedFloats input, output;
  const auto make_room = [rows](int64_t width, AlignedFloats* floats) {
    if (static_cast<int64_t>(floats->size()) < rows * width) floats->resize(rows * width);
  };
  int64_t stride = scale_.mean.size(0);
  make_room(stride, &input);
  scale_.Apply(raw_obs, rows, input.data());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int64_t width = Padded(layers_[i].outputs());
    make_room(width, &output);
    layers_[i].Forward(input.data(), stride, rows, output.data());
    if (i + 1 < layers_.size()) Activate(network_->options().activation, output.data(), rows * width);
    input.swap(output);
    stride = width;
  }
  for (int64_t i = 0; i < rows; ++i) head = std::copy_n(input.data() + i * stride, head_size(), head);
}

torch::Tensor Policy::log_std() const {
  return network_->log_std().defined() ? network_->log_std().detach() : torch::Tensor();
}

uint64_t SnapshotDigest(const v1::PolicySnapshot& snapshot) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const v1::Tensor& tensor : snapshot.tensors()) {
    XXH3_64bits_update(state, tensor.name().data(), tensor.name().size());
    XXH3_64bits_update(state, tensor.data().data(), tensor.data().size());
  }
  const uint64_t digest = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return digest;
}

v1::PolicySnapshot MakeSnapshot(uint64_t version, const ActorCritic& network, const ObsScale& scale,
                                const v1::TransportConfig& transport) {
  v1::PolicySnapshot snapshot;
  snapshot.set_version(version);
  for (const auto& [name, tensor] : SnapshotTensors(network, scale)) {
    v1::Tensor* const wire = snapshot.add_tensors();
    EncodeTensor(name, tensor, wire);
    if (transport.policy_precision() == v1::PRECISION_BF16 && tensor.dim() > 1) Narrow(wire);
    if (transport.policy_compression() == v1::COMPRESSION_ZSTD) Compress(wire);
  }
  snapshot.set_digest(SnapshotDigest(snapshot));
  return snapshot;
}

}  // namespace skein
