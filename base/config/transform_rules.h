// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// The rules of transforms of environments (EnvConfig.transforms, EnvConfig.hide). Whether an environment can have them,
// for instance whether it has a column that is hidden, is decided where environments are made.
namespace skein {

// InvalidArgument: names the transform that is not one, is out of its range or contradicts another setting.
absl::Status CheckTransforms(const v1::RunConfig& config);

}  // namespace skein
