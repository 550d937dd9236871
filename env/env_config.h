// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "env/env.h"
#include "env/env_options.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Converts a run's environment settings to EnvOptions. REQUIRES: `config` has its defaults applied and is validated,
// its transforms by CheckTransforms.
EnvOptions MakeEnvOptions(const v1::EnvConfig& config);
// The same with the limit of a step (rollout.step_timeout_seconds), for programs that step environments.
EnvOptions MakeEnvOptions(const v1::RunConfig& config);

// The value of the setting env.external.spec for a user's own environment with this spec.
std::string ExternalSpecSetting(const EnvSpec& spec);

}  // namespace skein
