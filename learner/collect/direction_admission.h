// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "learner/collect/admission.h"

namespace skein {

// Checks what an answer for directions says, as far as it can be checked without playing them: each direction has as
// many steps as its episodes can have, a return that is finite is one of so many rewards, the header's `env_steps` are
// the sum, and so many observations can have the sums that are sent. InvalidArgument: "fields.<name>: ...".
// REQUIRES: `checked` has located fields of directions.
absl::Status CheckDirections(const CheckedFragment& checked, uint64_t env_steps);

}  // namespace skein
