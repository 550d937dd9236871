// SPDX-License-Identifier: Apache-2.0
#include "trajectory/env_spec_info.h"

namespace skein {

v1::EnvSpecInfo MakeEnvSpecInfo(const EnvSpec& spec) {
  v1::EnvSpecInfo info;
  info.set_env_id(spec.id);
  info.set_obs_size(spec.obs_size);
  info.set_action_size(spec.action_size);
  info.set_discrete(spec.discrete);
  info.set_num_agents(spec.num_agents);
  info.set_relocatable(spec.relocatable);
  info.set_global_state_size(spec.global_state_size);
  info.mutable_episode_metrics()->Assign(spec.episode_metrics.begin(), spec.episode_metrics.end());
  return info;
}

}  // namespace skein
