// SPDX-License-Identifier: Apache-2.0
#include "eval/checkpoint_policy.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/run/checkpoint.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

using TensorsByName = std::map<std::string, const v1::Tensor*>;

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(path + "/manifest.json", ignored) || fs::exists(path + "/DONE", ignored)) {
    auto checkpoint = LoadCheckpoint(path);
    if (!checkpoint.ok()) return checkpoint.status();
    return FoundCheckpoint{.path = path, .checkpoint = *std::move(checkpoint), .warnings = {}};
  }
  if (!fs::is_directory(path, ignored)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such folder; give a checkpoint's or a run's"));
  }
  const bool is_run = fs::is_directory(path + "/checkpoints", ignored);
  return LoadNewestCheckpoint(is_run ? path + "/checkpoints" : path);
}

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

absl::StatusOr<std::shared_ptr<const Policy>> RebuildPolicy(const Checkpoint& checkpoint, const v1::RunConfig& config,
                                                            const EnvSpec& env_spec) {
  const PolicySpec spec = MakePolicySpec(config.model(), env_spec);
  TensorsByName tensors;
  for (const v1::Tensor& tensor : checkpoint.model) tensors[tensor.name()] = &tensor;
  std::vector<std::vector<float>> parameters;
  for (const ParameterSpec& parameter : PolicyParameters(spec)) {
    auto values = Take<float>(tensors, parameter.name, v1::DATA_TYPE_FLOAT32, parameter.shape);
    if (!values.ok()) return values.status();
    parameters.push_back(*std::move(values));
  }
  if (!config.model().normalize_observations()) {
    return MakePolicy(checkpoint.iteration, spec, parameters, Normalization::Identity(spec.obs_size));
  }
  const std::vector<int64_t> shape = {spec.obs_size};
  const auto mean = Take<double>(tensors, "obs_normalizer.mean", v1::DATA_TYPE_FLOAT64, shape);
  if (!mean.ok()) return mean.status();
  const auto variance = Take<double>(tensors, "obs_normalizer.variance", v1::DATA_TYPE_FLOAT64, shape);
  if (!variance.ok()) return variance.status();
  return MakePolicy(checkpoint.iteration, spec, parameters, Normalization::From(*mean, *variance));
}

}  // namespace

absl::StatusOr<CheckpointPolicy> LoadCheckpointPolicy(const std::string& path) {
  const auto found = FindCheckpoint(path);
  if (!found.ok()) return found.status();
  if (found->checkpoint.env_id == kSequenceModelId) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->path, " is a model of sequences and no policy; `skein detect` uses it"));
  }
  CheckpointPolicy loaded;
  loaded.path = found->path;
  if (absl::Status status = MergeYaml(found->checkpoint.config_yaml, found->path + " (configuration)", &loaded.config);
      !status.ok()) {
    return absl::DataLossError(status.message());
  }
  ApplyDefaults(&loaded.config);
  const auto spec = FindEnvSpec(found->checkpoint.env_id, MakeEnvOptions(loaded.config.env()));
  if (!spec.ok()) return spec.status();
  loaded.spec = *spec;
  auto policy = RebuildPolicy(found->checkpoint, loaded.config, *spec);
  if (!policy.ok())
    return absl::Status(policy.status().code(), absl::StrCat(found->path, ": ", policy.status().message()));
  loaded.policy = *std::move(policy);
  loaded.digest = CheckpointDigest(found->checkpoint);
  loaded.env_steps = found->checkpoint.env_steps;
  loaded.warnings = found->warnings;
  return loaded;
}

}  // namespace skein
