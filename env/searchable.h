// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "env/env.h"

namespace skein {

// Whether a search over directions can play in an environment. InvalidArgument: it has several agents, or its actions
// are reals without fixed bounds, so that no perturbation of a policy has a known size.
absl::Status CheckSearchable(const EnvSpec& spec);

}  // namespace skein
