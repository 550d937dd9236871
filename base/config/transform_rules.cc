// SPDX-License-Identifier: Apache-2.0
#include "base/config/transform_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config_reflection.h"

namespace skein {
namespace {

absl::Status CheckTransform(const v1::EnvTransform& transform, const std::string& path) {
  std::vector<const google::protobuf::FieldDescriptor*> given;
  transform.GetReflection()->ListFields(transform, &given);
  if (given.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected one transform, got ", given.size()));
  }
  if (absl::Status status = config_reflection::CheckSettings(transform, path); !status.ok()) return status;
  const std::string setting = absl::StrCat(path, ".", given[0]->name());
  if ((transform.has_clip() && !transform.clip()) || (transform.has_scale() && !transform.scale()) ||
      (transform.has_squash() && !transform.squash())) {
    return absl::InvalidArgumentError(absl::StrCat(setting, ": is not done when it is not listed; remove it"));
  }
  if (transform.has_reward_scale() && transform.reward_scale() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(setting, ": must not be 0, which would leave no reward"));
  }
  if (transform.reward_clip_size() > 0 &&
      (transform.reward_clip_size() != 2 || !(transform.reward_clip(0) < transform.reward_clip(1)))) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting, ": expected two numbers such as [-1, 1], the smaller one first"));
  }
  return absl::OkStatus();
}

// Only with a value function that can see more than the policy.
absl::Status CheckCriticSeesHidden(const v1::RunConfig& config) {
  const v1::EnvConfig& env = config.env();
  if (!env.critic_sees_hidden()) return absl::OkStatus();
  const bool hides =
      env.hide_size() > 0 || std::any_of(env.transforms().begin(), env.transforms().end(),
                                         [](const auto& transform) { return transform.hide_size() > 0; });
  const char* const why = !hides ? "nothing is hidden; name columns in env.hide"
                          : config.model().shared_trunk()
                              ? "not with model.shared_trunk, which reads what the policy reads"
                          : !config.model().central_critic() ? "needs model.central_critic: true"
                                                             : nullptr;
  return why == nullptr ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("env.critic_sees_hidden: ", why));
}

}  // namespace

absl::Status CheckTransforms(const v1::RunConfig& config) {
  const v1::EnvConfig& env = config.env();
  if (absl::Status status = CheckCriticSeesHidden(config); !status.ok()) return status;
  for (int i = 0; i < env.transforms_size(); ++i) {
    const std::string path = absl::StrCat("env.transforms[", i, "]");
    if (absl::Status status = CheckTransform(env.transforms(i), path); !status.ok()) return status;
    if (env.transforms(i).has_time_limit() && env.max_episode_steps() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ".time_limit (", env.transforms(i).time_limit(),
                                                     ") and env.max_episode_steps (", env.max_episode_steps(),
                                                     ") are both given; give one"));
    }
  }
  for (int i = 0; i < env.transforms_size() && config.sync().mode() == v1::SYNC_MODE_ON_DEVICE; ++i) {
    if (env.transforms(i).hide_size() > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("env.transforms[", i,
                     "]: of the transforms, environments on the device have hide alone; use another sync.mode than "
                     "on_device"));
  }
  return absl::OkStatus();
}

}  // namespace skein
