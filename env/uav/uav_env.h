// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/uav/uav_layout.h"

namespace skein {

// UavNavigate-v0 and UavCover-v0, each a UavWorld of its own. State saved: as UavLayout says. InvalidArgument: as
// CheckUavOptions.
absl::StatusOr<std::unique_ptr<Env>> MakeUavEnv(UavTask task, const UavOptions& options);

}  // namespace skein
