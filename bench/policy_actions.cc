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

absl::Status RecordEpisodes(const Policy& policy, uint64_t seed, uint32_t env_index, uint32_t episodes, VectorEnv* env,
                            std::vector<float>* actions) {
  const EnvSpec& spec = env->spec();
  std::vector<float> obs(static_cast<size_t>(spec.obs_size)), action(static_cast<size_t>(spec.action_size));
  std::vector<float> head(static_cast<size_t>(policy.spec().head_size()));
  std::vector<float> state(static_cast<size_t>(policy.spec().state_size()));
  float log_prob = 0;
  env->ResetAll(env_index);
  for (int64_t step = 0; step < int64_t{episodes} * spec.max_episode_steps; ++step) {
    env->Observe(obs.data());
    if (step % spec.max_episode_steps == 0) std::fill(state.begin(), state.end(), 0.0f);
    policy.Act(obs.data(), state.data(), 1, head.data(), state.data());
    SampleGaussian(seed, *env, head.data(), policy.log_std().data(), action.data(), &log_prob);
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
  VectorEnv::Options options = RunnerEnvOptions(config);
  options.num_envs = 1;
  const auto env = VectorEnv::Make(options);
  if (!env.ok()) return env.status();
  const EnvSpec& spec = (*env)->spec();
  if (spec.discrete || spec.num_agents != 1 || spec.max_episode_steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(spec.id, ": want real actions of one agent and a time limit"));
  }
  std::vector<std::vector<float>> actions(envs);
  for (uint32_t i = 0; i < envs; ++i) {
    if (absl::Status s = RecordEpisodes(*loaded->policy, config.seed(), i, episodes, env->get(), &actions[i]); !s.ok())
      return s;
  }
  return actions;
}

}  // namespace skein
