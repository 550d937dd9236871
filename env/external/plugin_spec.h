// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/env_plugin.h"

namespace skein {

// Reads the spec that an environment library declares, with the checks of ReadSpec (world_spec.h). An array is read
// only where its pointer is not null and its size is within the limits. FailedPrecondition names the field that is out
// of range or missing, and the numbers.
absl::StatusOr<EnvSpec> ReadPluginSpec(const SkeinEnvSpec& spec, const std::string& id);

}  // namespace skein
