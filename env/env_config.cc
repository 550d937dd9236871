// SPDX-License-Identifier: Apache-2.0
#include "env/env_config.h"

#include <array>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

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

MujocoArgument MakeMujocoArgument(const v1::MujocoConfig& config, const google::protobuf::FieldDescriptor* field) {
  using google::protobuf::FieldDescriptor;
  const auto* const reflection = config.GetReflection();
  if (field->is_repeated()) {
    // A list of another length than two is no range: both ends are then the same, which no task accepts.
    const double low = reflection->GetRepeatedDouble(config, field, 0);
    const bool pair = reflection->FieldSize(config, field) == 2;
    return std::array<double, 2>{low, pair ? reflection->GetRepeatedDouble(config, field, 1) : low};
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(config, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(config, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return double{static_cast<double>(reflection->GetUInt32(config, field))};
    default:
      return reflection->GetDouble(config, field);
  }
}

MujocoOptions MakeMujocoOptions(const v1::EnvConfig& config) {
  MujocoOptions options{.clip_actions = config.clip_actions_for_reward()};
  std::vector<const google::protobuf::FieldDescriptor*> given;
  config.mujoco().GetReflection()->ListFields(config.mujoco(), &given);
  for (const auto* const field : given) options.arguments[field->name()] = MakeMujocoArgument(config.mujoco(), field);
  return options;
}

}  // namespace

EnvOptions MakeEnvOptions(const v1::EnvConfig& config) {
  return {MakeLatencyOptions(config.latency()), MakeUavOptions(config.uav()), MakeMujocoOptions(config)};
}

}  // namespace skein
