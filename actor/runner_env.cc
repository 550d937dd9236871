// SPDX-License-Identifier: Apache-2.0
#include "actor/runner_env.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actor/faulty_env.h"
#include "base/config/algorithm_rules.h"
#include "base/config/phases.h"
#include "env/env_config.h"
#include "env/registry.h"

namespace skein {
VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config, uint32_t phase) {
  VectorEnv::Options options;
  options.env_id = config.env().id();
  // Directions are played one episode after the other.
  const bool search = SearchesDirections(config);
  const uint32_t envs = search ? 1 : config.rollout().envs_per_runner();
  options.size = static_cast<int>(envs);
  options.seed = config.seed();
  // New environments would play the same episode, and fail again.
  options.obs_may_diverge = search;
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.env = MakeEnvOptions(ConfigOfPhase(config, phase));
  return options;
}

absl::StatusOr<std::unique_ptr<VectorEnv>> MakeRunnerEnv(const v1::RunConfig& config, uint32_t phase) {
  const VectorEnv::Options options = RunnerEnvOptions(config, phase);
  try {
    auto envs = MakeEnvs(options.env_id, options.size, options.env);
    if (!envs.ok()) return envs.status();
    for (std::unique_ptr<Env>& env : *envs) env = MakeFaulty(std::move(env));
    return VectorEnv::Wrap(*std::move(envs), options);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("environment ", options.env_id, " cannot be built: ", error.what()));
  }
}

}  // namespace skein
