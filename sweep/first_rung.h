// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "skein/v1/config.pb.h"
#include "skein/v1/sweep.pb.h"

namespace skein {

// Fills in where ASHA's and Hyperband's first rung is (scheduler.min_steps), if the file leaves it open: at total_steps
// / reduction^3. Where the metric is one of episodes it is not before each environment can have ended an episode, since
// there may be no value until then; but at most at total_steps / reduction. `base`: resolved.
void ChooseFirstRung(const v1::RunConfig& base, v1::SweepConfig* config);

}  // namespace skein
