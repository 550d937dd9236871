// SPDX-License-Identifier: Apache-2.0
#include "actor/runner_env.h"

#include "model/env_config.h"

namespace skein {
VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config) {
  VectorEnv::Options options;
  options.env_id = config.env().id();
  options.num_envs = static_cast<int>(config.rollout().envs_per_runner());
  options.seed = config.seed();
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.env = MakeEnvOptions(config.env());
  return options;
}

}  // namespace skein
