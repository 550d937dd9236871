// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "env/env.h"

namespace skein {

// Checks that a search over directions can play in an environment, by actors or on a device. InvalidArgument: it has
// several agents, which only a device plays; or its actions are reals without fixed bounds, so that no perturbation of
// a policy has a known size.
absl::Status CheckSearchable(const EnvSpec& spec, bool on_device);

}  // namespace skein
