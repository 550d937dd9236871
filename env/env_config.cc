// SPDX-License-Identifier: Apache-2.0
#include "env/env_config.h"

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

UavOptions MakeUavOptions(const v1::UavConfig& config) {
  return {.uavs = static_cast<int>(config.uavs()),
          .obstacles = static_cast<int>(config.obstacles()),
          .size = static_cast<int>(config.size()),
          .radius = config.radius(),
          .speed = config.speed(),
          .continuous = config.continuous(),
          .sensing_radius = static_cast<int>(config.sensing_radius()),
          .neighbours = static_cast<int>(config.neighbours()),
          .team_share = config.team_share(),
          .progress_reward = config.progress_reward(),
          .target_reward = config.target_reward(),
          .cover_reward = config.cover_reward(),
          .collision_penalty = config.collision_penalty(),
          .step_penalty = config.step_penalty()};
}

}  // namespace

EnvOptions MakeEnvOptions(const v1::EnvConfig& config) {
  return {MakeLatencyOptions(config.latency()), MakeUavOptions(config.uav())};
}

}  // namespace skein
