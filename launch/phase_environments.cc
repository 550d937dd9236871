// SPDX-License-Identifier: Apache-2.0
#include "launch/phase_environments.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/config/phases.h"
#include "env/env_config.h"
#include "env/registry.h"

namespace skein {

absl::Status CheckPhaseEnvironments(const v1::RunConfig& config, const EnvSpec& spec) {
  const auto own = static_cast<uint32_t>(config.phases_size());
  for (uint32_t phase = 0; phase < own; ++phase) {
    const std::string where = absl::StrCat("phases[", phase, "].set: ");
    const auto other = FindEnvSpec(spec.id, MakeEnvOptions(ConfigOfPhase(config, phase).env()));
    if (!other.ok()) return absl::InvalidArgumentError(where + std::string(other.status().message()));
    if (!spec.relocatable && EnvPhase(config, phase) != EnvPhase(config, own)) {
      return absl::InvalidArgumentError(absl::StrCat(where, "the settings of ", spec.id,
                                                     " cannot change during a run, because its state cannot be moved "
                                                     "to an environment with others"));
    }
  }
  return absl::OkStatus();
}

}  // namespace skein
