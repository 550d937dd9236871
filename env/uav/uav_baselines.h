// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/uav/uav_options.h"

namespace skein {

// What UAVs of UavNavigate-v0 do that only want to be at their targets: discrete, the heading with the smallest angle
// to the target, the lowest of equals; continuous, straight to it at full speed. Obstacles and others are not looked
// at. obs: [agents, O] as observed; action: [agents, 1] or [agents, 2], written. REQUIRES:
// CheckUavOptions(options).ok().
void FlyToTargets(const UavOptions& options, int agents, const float* obs, float* action);

}  // namespace skein
