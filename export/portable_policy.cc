// SPDX-License-Identifier: Apache-2.0
#include "export/portable_policy.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "env/registry.h"
#include "env/transform/transform_json.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr int kFormat = 1;

std::string SpecJson(const PortablePolicy& policy) {
  const EnvSpec& spec = policy.spec;
  nlohmann::ordered_json json = {{"observation_size", policy.env.obs_size},
                                 {"discrete", spec.discrete},
                                 {"action_size", spec.action_size},
                                 {"agents", spec.num_agents},
                                 {"state_size", policy.state_size()},
                                 {"clip_actions", !spec.discrete && spec.clip_actions},
                                 {"max_episode_steps", spec.max_episode_steps}};
  if (!spec.discrete) {
    json["action_low"] = policy.env.action_low;
    json["action_high"] = policy.env.action_high;
  }
  return json.dump();
}

}  // namespace

int64_t PortablePolicy::state_size() const {
  int64_t size = network.state_size();
  for (const Transform& transform : transforms) {
    if (transform.options.kind != TransformOptions::Kind::kStack) continue;
    size += int64_t{transform.options.count - 1} * transform.inner.obs_size;
  }
  return size;
}

std::vector<float> PortablePolicy::Std() const {
  std::vector<float> std;
  if (network.discrete) return std;
  for (const float log_std : Parameter("log_std")) std.push_back(static_cast<float>(std::exp(double{log_std})));
  return std;
}

const std::vector<float>& PortablePolicy::Parameter(const std::string& name) const {
  const std::vector<ParameterSpec> specs = PolicyParameters(network);
  size_t i = 0;
  while (specs[i].name != name) ++i;
  return parameters[i];
}

PortablePolicy MakePortable(const CheckpointPolicy& checkpoint) {
  PortablePolicy policy = {.env = checkpoint.spec,
                           .spec = checkpoint.spec,
                           .transforms = checkpoint.transforms,
                           .network = checkpoint.policy->spec(),
                           .parameters = checkpoint.parameters,
                           .normalization = checkpoint.normalization,
                           .env_id = checkpoint.spec.id,
                           .digest = checkpoint.digest,
                           .metadata = {}};
  if (!policy.transforms.empty()) policy.env = policy.transforms.front().inner;
  policy.metadata = {{"skein.format", absl::StrCat(kFormat)},   {"skein.env_id", policy.env_id},
                     {"skein.spec", SpecJson(policy)},          {"skein.transforms", TransformsJson(policy.transforms)},
                     {"skein.digest", policy.digest},           {"skein.env_steps", absl::StrCat(checkpoint.env_steps)},
                     {"skein.mujoco_version", MujocoVersion()}, {"skein.config_yaml", ToYaml(checkpoint.config)}};
  return policy;
}

}  // namespace skein
