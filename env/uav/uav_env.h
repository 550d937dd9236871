// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/uav/uav_layout.h"

namespace skein {

// UavNavigate-v0 and UavCover-v0: `count` environments that are rows of one UavWorld, so one thread at a time uses all
// of them. State saved: as UavLayout says. InvalidArgument: as CheckUavOptions. REQUIRES: count >= 1.
absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeUavEnvs(UavTask task, int count, const UavOptions& options);

}  // namespace skein
