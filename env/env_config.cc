// SPDX-License-Identifier: Apache-2.0
#include "env/env_config.h"

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "env/external/world_spec.h"
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

RepeatPreviousOptions MakeRepeatPreviousOptions(const v1::RepeatPreviousConfig& config) {
  return {.delay = static_cast<int>(config.delay()), .choices = static_cast<int>(config.choices())};
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
    // A list of another length than two is no range: its ends are then no numbers, which no task accepts.
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    if (reflection->FieldSize(config, field) != 2) return std::array<double, 2>{kNone, kNone};
    return std::array<double, 2>{reflection->GetRepeatedDouble(config, field, 0),
                                 reflection->GetRepeatedDouble(config, field, 1)};
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

ExternalOptions MakeExternalOptions(const v1::EnvConfig& config) {
  const v1::ExternalEnvConfig& external = config.external();
  ExternalOptions options{.python = PythonProgram(external.python()),
                          .arguments = external.arguments(),
                          .start_timeout = absl::Seconds(external.start_timeout_seconds()),
                          .restarts = external.restarts()};
  // A text that skein has not written is as good as none: the environment is asked.
  if (auto spec = ParseSpecText(external.spec(), config.id()); external.has_spec() && spec.ok()) {
    options.spec = *std::move(spec);
  }
  return options;
}

TransformOptions MakeTransformOptions(const v1::EnvTransform& transform, std::string setting) {
  using Kind = TransformOptions::Kind;
  TransformOptions options = {.setting = std::move(setting)};
  options.kind = transform.has_scale()              ? Kind::kScale
                 : transform.has_squash()           ? Kind::kSquash
                 : transform.has_stack()            ? Kind::kStack
                 : transform.hide_size() > 0        ? Kind::kHide
                 : transform.has_time_limit()       ? Kind::kTimeLimit
                 : transform.has_reward_scale()     ? Kind::kRewardScale
                 : transform.reward_clip_size() > 0 ? Kind::kRewardClip
                                                    : Kind::kClip;
  options.count = static_cast<int>(transform.has_stack() ? transform.stack() : transform.time_limit());
  options.columns.assign(transform.hide().begin(), transform.hide().end());
  options.factor = transform.reward_scale();
  if (transform.reward_clip_size() == 2) {
    options.low = transform.reward_clip(0);
    options.high = transform.reward_clip(1);
  }
  return options;
}

std::vector<TransformOptions> MakeTransforms(const v1::EnvConfig& config) {
  std::vector<TransformOptions> transforms;
  if (config.hide_size() > 0) {
    v1::EnvTransform hide;
    *hide.mutable_hide() = config.hide();
    transforms.push_back(MakeTransformOptions(hide, "env.hide"));
  }
  for (int i = 0; i < config.transforms_size(); ++i) {
    transforms.push_back(MakeTransformOptions(config.transforms(i), "env.transforms[" + std::to_string(i) + "]"));
  }
  for (TransformOptions& transform : transforms) transform.critic_sees_hidden = config.critic_sees_hidden();
  return transforms;
}

}  // namespace

EnvOptions MakeEnvOptions(const v1::EnvConfig& config) {
  return {.latency = MakeLatencyOptions(config.latency()),
          .repeat_previous = MakeRepeatPreviousOptions(config.repeat_previous()),
          .uav = MakeUavOptions(config.uav()),
          .mujoco = MakeMujocoOptions(config),
          .external = MakeExternalOptions(config),
          .transforms = MakeTransforms(config)};
}

EnvOptions MakeEnvOptions(const v1::RunConfig& config) {
  EnvOptions options = MakeEnvOptions(config.env());
  const double limit = config.rollout().step_timeout_seconds();
  options.external.step_timeout = limit > 0 ? absl::Seconds(limit) : absl::InfiniteDuration();
  return options;
}

std::string ExternalSpecSetting(const EnvSpec& spec) { return SpecText(spec); }

}  // namespace skein
