// SPDX-License-Identifier: Apache-2.0
#include "eval/checkpoint_policy.h"

#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/run/checkpoint.h"

namespace skein {
namespace {

using TensorsByName = std::map<std::string, torch::Tensor>;

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

absl::StatusOr<torch::Tensor> Take(const TensorsByName& tensors, const std::string& name,
                                   const std::vector<int64_t>& shape) {
  const auto it = tensors.find(name);
  if (it == tensors.end()) return absl::DataLossError(absl::StrCat("tensor ", name, " is missing"));
  if (it->second.sizes() != torch::IntArrayRef(shape)) {
    return absl::DataLossError(absl::StrCat("tensor ", name, ": got shape [", absl::StrJoin(it->second.sizes(), ", "),
                                            "], want [", absl::StrJoin(shape, ", "), "]"));
  }
  return it->second;
}

absl::StatusOr<std::shared_ptr<const Policy>> RebuildPolicy(const Checkpoint& checkpoint, const v1::RunConfig& config,
                                                            const EnvSpec& spec) {
  const ActorCriticOptions options = MakeActorCriticOptions(config.model(), spec);
  auto network = std::make_shared<ActorCritic>(options, config.seed());
  const TensorsByName tensors(checkpoint.model.begin(), checkpoint.model.end());
  for (auto& [name, parameter] : network->PolicyParameters()) {
    const auto saved = Take(tensors, name, parameter.sizes().vec());
    if (!saved.ok()) return saved.status();
    torch::Tensor target = parameter;
    target.copy_(*saved);
  }
  if (!config.model().normalize_observations()) {
    return std::make_shared<const Policy>(checkpoint.iteration, network, ObsScale::Identity(options.obs_size));
  }
  const auto count = tensors.find("obs_normalizer.count");
  if (count == tensors.end() || count->second.numel() != 1) {
    return absl::DataLossError("tensor obs_normalizer.count is missing or not a single number");
  }
  const auto mean = Take(tensors, "obs_normalizer.mean", {options.obs_size});
  if (!mean.ok()) return mean.status();
  const auto variance = Take(tensors, "obs_normalizer.variance", {options.obs_size});
  if (!variance.ok()) return variance.status();
  RunningMoments moments(options.obs_size);
  moments.Restore(count->second.item<double>(), mean->to(torch::kFloat64), variance->to(torch::kFloat64));
  return std::make_shared<const Policy>(checkpoint.iteration, network, ObsScale::From(moments));
}

}  // namespace

absl::StatusOr<CheckpointPolicy> LoadCheckpointPolicy(const std::string& path) {
  const auto found = FindCheckpoint(path);
  if (!found.ok()) return found.status();
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
