// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// MountainCarContinuous-v0: a car in a valley gains momentum to reach the flag on the right. Moore 1990, "Efficient
// memory-based learning for robot control", with continuous force. obs: position, velocity. State saved: the same two.
const EnvSpec& MountainCarContinuousSpec();
std::unique_ptr<Env> MakeMountainCarContinuous();

}  // namespace skein
