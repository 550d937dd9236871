// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The environments that one runner of this run steps. Pure. REQUIRES: defaults applied to `config` and validated.
VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config);

}  // namespace skein
