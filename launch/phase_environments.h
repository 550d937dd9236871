// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "env/env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Checks that the run's environment, of `spec`, takes the settings of each phase. InvalidArgument: it does not have a
// setting, or its settings cannot change; the message begins with the phase.
absl::Status CheckPhaseEnvironments(const v1::RunConfig& config, const EnvSpec& spec);

}  // namespace skein
