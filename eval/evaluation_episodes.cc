// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation_episodes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "env/registry.h"

namespace skein {
namespace {

constexpr uint32_t kMaxParallelEpisodes = 128;

// Counts what an evaluation has done, and tells it now and then.
class ProgressCount {
 public:
  ProgressCount(const EpisodeProgress& on_progress, uint32_t episodes)
      : on_progress_(on_progress), episodes_(episodes) {}
  void Stepped(uint32_t count) {
    env_steps_ += count;
    if (!on_progress_ || MonotonicNow() < next_) return;
    on_progress_(ended_, episodes_, env_steps_);
    next_ = MonotonicNow() + kEach;
  }
  void Ended() { ++ended_; }

 private:
  static constexpr absl::Duration kEach = absl::Seconds(10);
  const EpisodeProgress& on_progress_;
  const uint32_t episodes_;
  uint32_t ended_ = 0;
  int64_t env_steps_ = 0;
  absl::Duration next_ = MonotonicNow() + kEach;
};

absl::Status Endless(const std::string& env_id, uint32_t episode) {
  return absl::DataLossError(
      absl::StrCat(env_id, ": episode ", episode, " has not ended after ", kEndlessSteps,
                   " steps, and nothing limits it; give a limit with --set env.max_episode_steps=N"));
}

// Runs episodes first .. first + count - 1 side by side.
absl::Status RunSome(EpisodePolicy& policy, const VectorEnv::Options& options, uint32_t first, uint32_t count,
                     RecordedEpisode* recording, ProgressCount* progress, EvaluationResult* result,
                     std::vector<bool>* failed) {
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
  int64_t steps = 0;
  for (uint32_t running = count; running > 0;) {
    if (spec.max_episode_steps == 0 && steps++ == kEndlessSteps) {
      const auto endless = std::find(ended.begin(), ended.end(), false);
      return Endless(options.env_id, first + static_cast<uint32_t>(endless - ended.begin()));
    }
    envs.Observe(obs.data());
    policy.Act(obs.data(), action.data());
    const VectorEnv::StepResult step = envs.Step(action.data());
    if (!envs.failure().ok()) return envs.failure();
    progress->Stepped(running);
    for (uint32_t e = 0; e < count; ++e) {
      if (ended[e] || !(step.terminated[e] || step.truncated[e])) continue;
      ended[e] = true;
      --running;
      progress->Ended();
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
                         RecordedEpisode* recording, EvaluationResult* result, const EpisodeProgress& on_progress) {
  const auto spec = FindEnvSpec(options.env_id, options.env);
  if (!spec.ok()) return spec.status();
  result->returns.resize(episodes);
  result->lengths.resize(episodes);
  for (const std::string& name : spec->episode_metrics) result->metrics[name].resize(episodes);
  std::vector<bool> failed(episodes, false);
  ProgressCount progress(on_progress, episodes);
  for (uint32_t first = 0; first < episodes; first += kMaxParallelEpisodes) {
    const uint32_t count = std::min(kMaxParallelEpisodes, episodes - first);
    if (absl::Status status = RunSome(policy, options, first, count, recording, &progress, result, &failed);
        !status.ok()) {
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
