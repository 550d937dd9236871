// SPDX-License-Identifier: Apache-2.0
// Writes safetensors: the numbers as tensors, and as metadata what is to be done with them.
#include <map>

#include "export/portable_policy.h"
#include "policy/safetensors.h"

namespace skein {
namespace {

v1::Tensor MakeTensor(const std::string& name, const std::vector<float>& values, const std::vector<int64_t>& shape) {
  v1::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype(v1::DATA_TYPE_FLOAT32);
  for (const int64_t size : shape) tensor.add_shape(size);
  tensor.set_data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return tensor;
}

const char* Name(ActivationKind activation) {
  return activation == ActivationKind::kElu ? "elu" : activation == ActivationKind::kRelu ? "relu" : "tanh";
}

const char* Name(MemoryKind memory) {
  return memory == MemoryKind::kGru ? "gru" : memory == MemoryKind::kLstm ? "lstm" : "none";
}

}  // namespace

std::string WriteSafetensors(const PortablePolicy& policy) {
  const int64_t size = policy.network.obs_size;
  std::vector<v1::Tensor> tensors = {MakeTensor("obs_normalizer.mean", policy.normalization.mean, {size}),
                                     MakeTensor("obs_normalizer.inv_std", policy.normalization.inv_std, {size})};
  const std::vector<ParameterSpec> specs = PolicyParameters(policy.network);
  for (size_t i = 0; i < specs.size(); ++i) {
    tensors.push_back(MakeTensor(specs[i].name, policy.parameters[i], specs[i].shape));
  }
  std::map<std::string, std::string> metadata(policy.metadata.begin(), policy.metadata.end());
  metadata["skein.activation"] = Name(policy.network.activation);
  metadata["skein.memory"] = Name(policy.network.memory);
  return EncodeSafetensors(tensors, metadata);
}

}  // namespace skein
