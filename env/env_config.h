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
// The same with the limit of a step (rollout.step_timeout_seconds), for who steps environments.
EnvOptions MakeEnvOptions(const v1::RunConfig& config);

// What env.external.spec is for an environment of one's own.
std::string ExternalSpecSetting(const EnvSpec& spec);

}  // namespace skein
