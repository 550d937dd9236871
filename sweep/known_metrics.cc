// SPDX-License-Identifier: Apache-2.0
#include "sweep/known_metrics.h"

#include "env/env_config.h"
#include "env/registry.h"

namespace skein {

std::vector<std::string> KnownMetrics(const v1::RunConfig& config) {
  std::vector<std::string> names = {
      "episode_return_mean", "eval.return_mean", "eval.return_std",      "eval.return_min", "eval.return_max",
      "eval.length_mean",    "episodes",         "env_steps_per_second", "seconds",         "samples",
      "policy_lag"};
  const auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return names;
  for (const std::string& name : spec->episode_metrics) names.push_back("episode_metrics." + name);
  return names;
}

}  // namespace skein
