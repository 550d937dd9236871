// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation_episodes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "env/registry.h"

namespace skein {
namespace {

constexpr uint32_t kMaxParallelEpisodes = 128;

// Runs episodes first .. first + count - 1 side by side.
absl::Status RunSome(EpisodePolicy& policy, const VectorEnv::Options& options, uint32_t first, uint32_t count,
                     RecordedEpisode* recording, EvaluationResult* result, std::vector<bool>* failed) {
  auto made = MakeEnvs(options.env_id, static_cast<int>(count), options.env);
  if (!made.ok()) return made.status();
  if (recording != nullptr && recording->episode >= first && recording->episode - first < count) {
    std::unique_ptr<Env>& env = (*made)[recording->episode - first];
    env = MakeRecordingEnv(std::move(env), &recording->states);
  }
  auto wrapped = VectorEnv::Wrap(*std::move(made), options);
  if (!wrapped.ok()) return wrapped.status();
  VectorEnv& envs = **wrapped;
  const EnvSpec& spec = envs.spec();
  const size_t agents = size_t{count} * spec.num_agents;
  std::vector<float> obs(agents * spec.obs_size), action(agents * (spec.discrete ? 1 : spec.action_size));
  std::vector<bool> ended(count, false);
  envs.ResetAll(first);
  policy.Begin(first, count);
  for (uint32_t running = count; running > 0;) {
    envs.Observe(obs.data());
    policy.Act(obs.data(), action.data());
    const VectorEnv::StepResult step = envs.Step(action.data());
    if (!envs.failure().ok()) return envs.failure();
    for (uint32_t e = 0; e < count; ++e) {
      if (ended[e] || !(step.terminated[e] || step.truncated[e])) continue;
      ended[e] = true;
      --running;
      (*failed)[first + e] = step.diverged[e] != 0;
      result->returns[first + e] = step.episode_return[e];
      result->lengths[first + e] = step.episode_length[e];
      const float* metric = step.episode_metrics + e * spec.episode_metrics.size();
      for (const std::string& name : spec.episode_metrics) {
        result->metrics[name][first + e] = static_cast<double>(*metric++);
      }
    }
  }
  return absl::OkStatus();
}

template <typename Value>
void LeaveOut(const std::vector<bool>& failed, std::vector<Value>* values) {
  size_t kept = 0;
  for (size_t i = 0; i < failed.size(); ++i) {
    if (!failed[i]) (*values)[kept++] = (*values)[i];
  }
  values->resize(kept);
}

}  // namespace

absl::Status RunEpisodes(EpisodePolicy& policy, const VectorEnv::Options& options, uint32_t episodes,
                         RecordedEpisode* recording, EvaluationResult* result) {
  const auto spec = FindEnvSpec(options.env_id, options.env);
  if (!spec.ok()) return spec.status();
  result->returns.resize(episodes);
  result->lengths.resize(episodes);
  for (const std::string& name : spec->episode_metrics) result->metrics[name].resize(episodes);
  std::vector<bool> failed(episodes, false);
  for (uint32_t first = 0; first < episodes; first += kMaxParallelEpisodes) {
    const uint32_t count = std::min(kMaxParallelEpisodes, episodes - first);
    if (absl::Status status = RunSome(policy, options, first, count, recording, result, &failed); !status.ok()) {
      return status;
    }
  }
  result->failed_episodes = static_cast<uint32_t>(std::count(failed.begin(), failed.end(), true));
  LeaveOut(failed, &result->returns);
  LeaveOut(failed, &result->lengths);
  for (auto& [name, values] : result->metrics) LeaveOut(failed, &values);
  return absl::OkStatus();
}

}  // namespace skein
