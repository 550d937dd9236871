// SPDX-License-Identifier: Apache-2.0
#include "env/external/plugin_spec.h"

#include "absl/strings/str_cat.h"
#include "env/external/world_spec.h"

namespace skein {

absl::StatusOr<EnvSpec> ReadPluginSpec(const SkeinEnvSpec& spec, const std::string& id) {
  if (spec.num_metrics > kMostMetrics) {
    return RefusedSpec(id, absl::StrCat("num_metrics is ", spec.num_metrics, ", want 0 to ", kMostMetrics));
  }
  env::v1::Spec message;
  message.set_num_agents(spec.num_agents);
  message.set_obs_size(spec.obs_size);
  message.set_discrete(spec.discrete != 0);
  message.set_action_size(spec.action_size);
  const bool has_bounds = spec.action_low != nullptr && spec.action_high != nullptr;
  // A size beyond that is refused below.
  if (spec.discrete == 0 && has_bounds && spec.action_size <= kMostNumbers) {
    message.mutable_action_low()->Add(spec.action_low, spec.action_low + spec.action_size);
    message.mutable_action_high()->Add(spec.action_high, spec.action_high + spec.action_size);
  }
  message.set_global_state_size(spec.global_state_size);
  message.set_max_episode_steps(spec.max_episode_steps);
  message.set_reward_threshold(spec.reward_threshold);
  for (uint32_t i = 0; i < spec.num_metrics; ++i) {
    if (spec.metric_names == nullptr || spec.metric_names[i] == nullptr) {
      return RefusedSpec(id, absl::StrCat("metric_names has no name ", i));
    }
    message.add_episode_metrics(spec.metric_names[i]);
  }
  message.set_state_size(spec.state_size);
  return ReadSpec(message, id);
}

}  // namespace skein
