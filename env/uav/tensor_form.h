// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "env/uav/uav_layout.h"

namespace skein {

// The task of an environment that exists as tensors too (env/uav/tensor/tensor_world.h), which sync.mode on_device
// needs. InvalidArgument: it does not; names those that do.
absl::StatusOr<UavTask> FindTensorForm(const std::string& env_id);

}  // namespace skein
