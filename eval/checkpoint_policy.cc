// SPDX-License-Identifier: Apache-2.0
#include "eval/checkpoint_policy.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/config/transform_rules.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/run/checkpoint.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

using TensorsByName = std::map<std::string, const v1::Tensor*>;

// The bytes of a tensor as values of that type.
template <typename Value>
absl::StatusOr<std::vector<Value>> Take(const TensorsByName& tensors, const std::string& name, v1::DataType dtype,
                                        const std::vector<int64_t>& shape) {
  const auto it = tensors.find(name);
  if (it == tensors.end()) return absl::DataLossError(absl::StrCat("tensor ", name, " is missing"));
  const absl::Status status = CheckTensor(*it->second, absl::StrCat("tensor ", name), dtype, shape);
  if (!status.ok()) return absl::DataLossError(status.message());
  const std::string& data = it->second->data();
  std::vector<Value> values(data.size() / sizeof(Value));
  std::copy_n(data.data(), data.size(), reinterpret_cast<char*>(values.data()));
  return values;
}

// Fills in the policy and what it is made of.
absl::Status RebuildPolicy(const Checkpoint& checkpoint, CheckpointPolicy* loaded) {
  const v1::ModelConfig& model = loaded->config.model();
  const PolicySpec spec = MakePolicySpec(model, loaded->spec);
  TensorsByName tensors;
  for (const v1::Tensor& tensor : checkpoint.model) tensors[tensor.name()] = &tensor;
  for (const ParameterSpec& parameter : PolicyParameters(spec)) {
    auto values = Take<float>(tensors, parameter.name, v1::DATA_TYPE_FLOAT32, parameter.shape);
    if (!values.ok()) return values.status();
    loaded->parameters.push_back(*std::move(values));
  }
  loaded->normalization = Normalization::Identity(spec.obs_size);
  if (model.normalize_observations()) {
    const std::vector<int64_t> shape = {spec.obs_size};
    const auto mean = Take<double>(tensors, "obs_normalizer.mean", v1::DATA_TYPE_FLOAT64, shape);
    if (!mean.ok()) return mean.status();
    const auto variance = Take<double>(tensors, "obs_normalizer.variance", v1::DATA_TYPE_FLOAT64, shape);
    if (!variance.ok()) return variance.status();
    loaded->normalization = Normalization::From(*mean, *variance);
  }
  loaded->policy = MakePolicy(checkpoint.iteration, spec, loaded->parameters, loaded->normalization);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointPolicy> LoadCheckpointPolicy(const std::string& path, bool any_model) {
  const auto found = FindCheckpoint(path);
  if (!found.ok()) return found.status();
  if (found->checkpoint.env_id == kSequenceModelId) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->path, " is a model of sequences and no policy; `skein detect` uses it"));
  }
  CheckpointPolicy loaded;
  loaded.path = found->path;
  const std::string source = found->path + " (configuration)";
  if (absl::Status status = MergeYaml(found->checkpoint.config_yaml, source, &loaded.config); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  ApplyDefaults(&loaded.config);
  if (absl::Status status = CheckTransforms(loaded.config); !status.ok()) {
    return absl::DataLossError(absl::StrCat(source, ": ", status.message()));
  }
  EnvOptions options = MakeEnvOptions(loaded.config.env());
  if (any_model) options.mujoco.arguments.erase("xml_digest");
  const auto spec = FindEnvSpec(found->checkpoint.env_id, options);
  if (!spec.ok()) return spec.status();
  loaded.spec = *spec;
  auto transforms = FindTransforms(found->checkpoint.env_id, options);
  if (!transforms.ok()) return transforms.status();
  loaded.transforms = *std::move(transforms);
  if (absl::Status status = RebuildPolicy(found->checkpoint, &loaded); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(found->path, ": ", status.message()));
  }
  loaded.digest = CheckpointDigest(found->checkpoint);
  loaded.env_steps = found->checkpoint.env_steps;
  loaded.warnings = found->warnings;
  return loaded;
}

}  // namespace skein
