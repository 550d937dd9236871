// SPDX-License-Identifier: Apache-2.0
#include "bench/policy_actions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "actor/action_sampler.h"
#include "actor/runner_env.h"
#include "env/vector_env.h"
#include "eval/checkpoint_policy.h"

namespace skein {
namespace {

// An environment of `config` whose episodes can be repeated with recorded actions.
absl::StatusOr<std::unique_ptr<VectorEnv>> MakeRecorded(const v1::RunConfig& config) {
  VectorEnv::Options options = RunnerEnvOptions(config);
  options.size = 1;
  auto env = VectorEnv::Make(options);
  if (!env.ok()) return env.status();
  const EnvSpec& spec = (*env)->spec();
  if (spec.discrete || spec.num_agents != 1 || spec.max_episode_steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(spec.id, ": want real actions of one agent and a time limit"));
  }
  return env;
}

// Plays one episode on, from where `env` is at its beginning. `log_std`: of the noise of the actions; empty = none.
absl::Status RecordEpisode(const Policy& policy, uint64_t seed, absl::Span<const float> log_std, VectorEnv* env,
                           std::vector<float>* actions) {
  const EnvSpec& spec = env->spec();
  std::vector<float> obs(static_cast<size_t>(spec.obs_size)), action(static_cast<size_t>(spec.action_size));
  std::vector<float> head(static_cast<size_t>(policy.spec().head_size()));
  std::vector<float> state(static_cast<size_t>(policy.spec().state_size()));
  float log_prob = 0;
  for (int step = 0; step < spec.max_episode_steps; ++step) {
    env->Observe(obs.data());
    policy.Act(obs.data(), state.data(), 1, head.data(), state.data());
    if (log_std.empty()) {
      action = head;
    } else {
      SampleGaussian(seed, *env, head.data(), log_std.data(), action.data(), &log_prob);
    }
    actions->insert(actions->end(), action.begin(), action.end());
    const VectorEnv::StepResult result = env->Step(action.data());
    if (result.terminated[0] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(spec.id, ": its episodes have no fixed length to be repeated in"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<float>>> RecordPolicyActions(const std::string& checkpoint,
                                                                    const v1::RunConfig& config, uint32_t envs,
                                                                    uint32_t episodes) {
  const auto loaded = LoadCheckpointPolicy(checkpoint);
  if (!loaded.ok()) return loaded.status();
  const auto env = MakeRecorded(config);
  if (!env.ok()) return env.status();
  std::vector<std::vector<float>> actions(envs);
  for (uint32_t i = 0; i < envs; ++i) {
    (*env)->ResetAll(i);
    for (uint32_t episode = 0; episode < episodes; ++episode) {
      const absl::Status status =
          RecordEpisode(*loaded->policy, config.seed(), loaded->policy->log_std(), env->get(), &actions[i]);
      if (!status.ok()) return status;
    }
  }
  return actions;
}

absl::StatusOr<std::vector<std::vector<float>>> RecordDirectionActions(const Policy& policy,
                                                                       const v1::RunConfig& config, uint32_t threads,
                                                                       uint32_t episodes) {
  const auto env = MakeRecorded(config);
  if (!env.ok()) return env.status();
  std::vector<std::vector<float>> actions(threads);
  for (uint32_t i = 0; i < threads; ++i) {
    (*env)->ResetAll(i);
    for (uint32_t episode = 0; episode < episodes; ++episode) {
      const Direction direction{config.seed(), 0, uint64_t{i} * episodes + episode};
      const auto perturbed = policy.Perturbed(direction, config.directions().noise_std());
      if (perturbed == nullptr) return absl::InvalidArgumentError("a policy with a memory cannot be perturbed");
      if (absl::Status s = RecordEpisode(*perturbed, config.seed(), {}, env->get(), &actions[i]); !s.ok()) return s;
    }
  }
  return actions;
}

}  // namespace skein
