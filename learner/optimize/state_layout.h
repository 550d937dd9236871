// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "learner/optimize/tensor_set.h"

namespace skein {

// Checks that saved tensors have the names, shapes and types of this run's. InvalidArgument: "<where>: " and the first
// that differs.
absl::Status CheckSameLayout(const StateTensors& got, const StateTensors& want, const std::string& where);

}  // namespace skein
