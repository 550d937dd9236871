// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/uav/uav_options.h"

namespace skein {

// Baseline actions for UavNavigate-v0: each UAV flies to its target and ignores obstacles and other UAVs. Discrete: the
// heading with the smallest angle to the target, ties go to the lowest. Continuous: straight to the target at full
// speed. obs: [agents, O] as observed; action: [agents, 1] or [agents, 2], written. REQUIRES:
// CheckUavOptions(options).ok().
void FlyToTargets(const UavOptions& options, int agents, const float* obs, float* action);

}  // namespace skein
