// SPDX-License-Identifier: Apache-2.0
#include "env/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/number/number_bounds.h"
#include "env/transform/columns.h"
#include "env/transform/transformed_envs.h"

namespace skein {
namespace {

using Kind = TransformOptions::Kind;

// More floats would not fit into messages, and are a mistake.
constexpr int64_t kMaxObsSize = int64_t{1} << 20;

absl::Status Refuse(const Transform& transform, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(transform.options.setting, ": ", why));
}

absl::Status CheckReals(const Transform& transform) {
  if (!transform.inner.discrete) return absl::OkStatus();
  return Refuse(transform, absl::StrCat("actions of ", transform.inner.id, " are choices, which have no bounds"));
}

absl::Status Hide(Transform* transform) {
  auto kept = KeptColumns(transform->inner, transform->options.columns);
  if (!kept.ok()) return Refuse(*transform, std::string(kept.status().message()));
  transform->kept = *std::move(kept);
  const EnvSpec& inner = transform->inner;
  EnvSpec& outer = transform->outer;
  if (transform->options.critic_sees_hidden) {
    const std::vector<int>& kept = transform->kept;
    for (int column = 0; column < inner.obs_size; ++column) {
      if (!std::binary_search(kept.begin(), kept.end(), column)) transform->shown.push_back(column);
    }
  }
  outer.global_state_size += inner.num_agents * static_cast<int>(transform->shown.size());
  outer.obs_size = static_cast<int>(transform->kept.size());
  outer.velocity_columns.clear();
  for (int column = 0; column < outer.obs_size; ++column) {
    const std::vector<int>& velocities = inner.velocity_columns;
    if (std::binary_search(velocities.begin(), velocities.end(), transform->kept[column])) {
      outer.velocity_columns.push_back(column);
    }
  }
  return absl::OkStatus();
}

absl::Status Stack(Transform* transform) {
  const EnvSpec& inner = transform->inner;
  EnvSpec& outer = transform->outer;
  const int count = transform->options.count;
  if (count < 1) return Refuse(*transform, "expected at least one observation");
  if (int64_t{inner.obs_size} * count * inner.num_agents > kMaxObsSize) {
    return Refuse(*transform, absl::StrCat(count, " observations of ", inner.obs_size, " numbers for ",
                                           inner.num_agents, " agents are more than ", kMaxObsSize, " numbers"));
  }
  outer.obs_size = inner.obs_size * count;
  if (outer.relocatable) outer.state_size += inner.num_agents * (count - 1) * inner.obs_size;
  outer.velocity_columns.clear();
  for (int i = 0; i < count; ++i) {
    for (const int column : inner.velocity_columns) outer.velocity_columns.push_back(i * inner.obs_size + column);
  }
  return absl::OkStatus();
}

// `bound`: of the outer actions, which are in [-bound, bound].
absl::Status Scale(Transform* transform, float bound) {
  if (absl::Status status = CheckReals(*transform); !status.ok()) return status;
  const EnvSpec& inner = transform->inner;
  for (int i = 0; i < inner.action_size; ++i) {
    // Where a bound is infinite, environments in other processes give kNumberBound.
    const float most = std::max(std::abs(inner.action_low[i]), std::abs(inner.action_high[i]));
    if (std::isfinite(most) && most < kNumberBound) continue;
    return Refuse(*transform, absl::StrCat("action ", i, " of ", inner.id, " has no bounds to scale to"));
  }
  transform->outer.action_low.assign(inner.action_size, -bound);
  transform->outer.action_high.assign(inner.action_size, bound);
  return absl::OkStatus();
}

// Sets what follows from `options` and `inner`.
absl::Status Resolve(Transform* transform) {
  EnvSpec& outer = transform->outer;
  const TransformOptions& options = transform->options;
  switch (options.kind) {
    case Kind::kClip:
      return CheckReals(*transform);
    case Kind::kScale:
      return Scale(transform, 1);
    case Kind::kSquash:
      return Scale(transform, kMaxSquashed);
    case Kind::kStack:
      return Stack(transform);
    case Kind::kHide:
      return Hide(transform);
    case Kind::kTimeLimit:
      outer.max_episode_steps =
          outer.max_episode_steps > 0 ? std::min(outer.max_episode_steps, options.count) : options.count;
      return absl::OkStatus();
    case Kind::kRewardScale:
      outer.reward_threshold *= options.factor;
      return absl::OkStatus();
    case Kind::kRewardClip:
      if (!(options.low < options.high)) return Refuse(*transform, "expected two numbers, the smaller one first");
      outer.reward_threshold = 0;  // Is of returns that are not clipped.
      return absl::OkStatus();
  }
  return absl::InternalError("a transform of an unknown kind");
}

}  // namespace

void TransformAction(const std::vector<Transform>& transforms, float* action) {
  for (auto transform = transforms.rbegin(); transform != transforms.rend(); ++transform) {
    const ActionChange change = ActionChangeOf(transform->options.kind);
    if (change != nullptr) change(transform->inner, action, action);
  }
}

absl::StatusOr<std::vector<Transform>> ResolveTransforms(const EnvSpec& spec,
                                                         const std::vector<TransformOptions>& transforms) {
  std::vector<Transform> resolved;
  for (const TransformOptions& options : transforms) {
    const EnvSpec& inner = resolved.empty() ? spec : resolved.back().outer;
    Transform transform = {.options = options, .inner = inner, .outer = inner};
    if (absl::Status status = Resolve(&transform); !status.ok()) return status;
    resolved.push_back(std::move(transform));
  }
  return resolved;
}

absl::StatusOr<EnvSpec> TransformedSpec(const EnvSpec& spec, const std::vector<TransformOptions>& transforms) {
  const auto resolved = ResolveTransforms(spec, transforms);
  if (!resolved.ok()) return resolved.status();
  return resolved->empty() ? spec : resolved->back().outer;
}

absl::Status WrapInTransforms(const std::vector<TransformOptions>& transforms,
                              std::vector<std::unique_ptr<Env>>* envs) {
  const auto resolved = ResolveTransforms(envs->front()->spec(), transforms);
  if (!resolved.ok()) return resolved.status();
  for (const Transform& transform : *resolved) WrapInTransform(transform, envs);
  return absl::OkStatus();
}

}  // namespace skein
