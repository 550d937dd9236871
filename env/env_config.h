// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/env_options.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Converts a run's environment settings to EnvOptions. REQUIRES: `config` has its defaults applied and is validated.
EnvOptions MakeEnvOptions(const v1::EnvConfig& config);

}  // namespace skein
