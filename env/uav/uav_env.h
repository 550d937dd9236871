// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/uav/uav_layout.h"

namespace skein {

// Makes a UavNavigate-v0 or UavCover-v0 environment with a UavWorld of its own. State saved: as in UavLayout.
// InvalidArgument: as CheckUavOptions.
absl::StatusOr<std::unique_ptr<Env>> MakeUavEnv(UavTask task, const UavOptions& options);

}  // namespace skein
