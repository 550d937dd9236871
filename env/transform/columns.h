// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"

namespace skein {

// The columns of an observation of `spec` that `hidden` leaves, in ascending order. Each element is a column ("3"), a
// range with both its ends ("8-16") or "velocities", those that the environment says are velocities. InvalidArgument:
// an element is none of these, a column is not there or named twice, none is left, or velocities are not known.
absl::StatusOr<std::vector<int>> KeptColumns(const EnvSpec& spec, const std::vector<std::string>& hidden);

}  // namespace skein
