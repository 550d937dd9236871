// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/env_options.h"
#include "skein/v1/config.pb.h"

namespace skein {

// REQUIRES: defaults applied to `config` and validated.
EnvOptions MakeEnvOptions(const v1::EnvConfig& config);

}  // namespace skein
