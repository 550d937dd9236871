// SPDX-License-Identifier: Apache-2.0
#include "actor/runner_env.h"

namespace skein {
namespace {

LatencyOptions MakeLatencyOptions(const v1::LatencyConfig& config) {
  using Distribution = LatencyOptions::Distribution;
  return {.step_ms = config.step_ms(),
          .distribution = config.distribution() == v1::LATENCY_DISTRIBUTION_PARETO        ? Distribution::kPareto
                          : config.distribution() == v1::LATENCY_DISTRIBUTION_EXPONENTIAL ? Distribution::kExponential
                                                                                          : Distribution::kFixed,
          .slow_envs = config.slow_envs(),
          .slow_factor = config.slow_factor()};
}

}  // namespace

VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config) {
  VectorEnv::Options options;
  options.env_id = config.env().id();
  options.num_envs = static_cast<int>(config.rollout().envs_per_runner());
  options.seed = config.seed();
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.latency = MakeLatencyOptions(config.env().latency());
  return options;
}

}  // namespace skein
