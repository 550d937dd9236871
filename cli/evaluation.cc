// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluation.h"

#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "learner/checkpoint.h"
#include "model/policy.h"

namespace skein {
namespace {

constexpr uint32_t kMaxParallelEpisodes = 128;

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

// Runs episodes first .. first + count - 1 side by side and appends what came of them.
absl::Status RunEpisodes(const Policy& policy, VectorEnv::Options env_options, uint32_t first, uint32_t count,
                         EvaluationResult* result) {
  env_options.num_envs = static_cast<int>(count);
  auto made = VectorEnv::Make(env_options);
  if (!made.ok()) return made.status();
  VectorEnv& envs = **made;
  const EnvSpec& spec = envs.spec();
  torch::Tensor obs = torch::empty({static_cast<int64_t>(count) * spec.num_agents, spec.obs_size}, torch::kFloat32);
  result->returns.resize(first + count);
  result->lengths.resize(first + count);
  std::vector<bool> ended(count, false);
  envs.ResetAll(first);
  for (uint32_t running = count; running > 0;) {
    envs.Observe(obs.data_ptr<float>());
    const torch::Tensor head = policy.Head(obs);
    const torch::Tensor action = (spec.discrete ? head.argmax(1).to(torch::kFloat32) : head).contiguous();
    const VectorEnv::StepResult step = envs.Step(action.data_ptr<float>());
    for (uint32_t e = 0; e < count; ++e) {
      if (ended[e] || !(step.terminated[e] || step.truncated[e])) continue;
      ended[e] = true;
      --running;
      result->returns[first + e] = step.episode_return[e];
      result->lengths[first + e] = step.episode_length[e];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> EvaluateOrThrow(const EvaluationOptions& options) {
  if (options.episodes < 1) return absl::InvalidArgumentError("--episodes: got 0, want at least 1");
  torch::set_num_threads(1);
  const torch::InferenceMode no_gradients;
  const auto found = FindCheckpoint(options.checkpoint);
  if (!found.ok()) return found.status();
  v1::RunConfig config;
  if (absl::Status status = MergeYaml(found->checkpoint.config_yaml, found->path + " (configuration)", &config);
      !status.ok()) {
    return absl::DataLossError(status.message());
  }
  ApplyDefaults(&config);
  const VectorEnv::Options env_options{.env_id = found->checkpoint.env_id,
                                       .seed = options.seed,
                                       .max_episode_steps = static_cast<int>(config.env().max_episode_steps()),
                                       .reset_purpose = RandomPurpose::kEvaluation};
  const auto env = MakeEnv(env_options.env_id);
  if (!env.ok()) return env.status();
  const auto policy = RebuildPolicy(found->checkpoint, config, (*env)->spec());
  if (!policy.ok())
    return absl::Status(policy.status().code(), absl::StrCat(found->path, ": ", policy.status().message()));

  EvaluationResult result;
  result.env_id = env_options.env_id;
  result.checkpoint = found->path;
  result.digest = CheckpointDigest(found->checkpoint);
  result.env_steps = found->checkpoint.env_steps;
  result.seed = options.seed;
  result.mujoco_version = MujocoVersion();
  result.warnings = found->warnings;
  for (uint32_t first = 0; first < options.episodes; first += kMaxParallelEpisodes) {
    const uint32_t count = std::min(kMaxParallelEpisodes, options.episodes - first);
    if (absl::Status status = RunEpisodes(**policy, env_options, first, count, &result); !status.ok()) return status;
  }
  return result;
}

}  // namespace

absl::StatusOr<EvaluationResult> Evaluate(const EvaluationOptions& options) {
  try {
    return EvaluateOrThrow(options);
  } catch (const c10::Error& error) {  // Torch's exceptions end here.
    return absl::InternalError(absl::StrCat("evaluation: ", error.what_without_backtrace()));
  }
}

}  // namespace skein
