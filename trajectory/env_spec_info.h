// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/env.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// The description of the environment that actor and learner compare before they exchange data.
v1::EnvSpecInfo MakeEnvSpecInfo(const EnvSpec& spec);

}  // namespace skein
