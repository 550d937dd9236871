// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sweep/scheduler.h"
#include "sweep/space.h"
#include "sweep/trial.h"

namespace skein {

// The share of the spread of the results that each parameter explains by itself, from 0 to 1: epsilon squared of a
// one-way analysis of variance (Kelley 1935), that is eta squared without what chance alone would explain. The groups
// are a choice's values, or the quarters of a number's sorted values.
struct Importance {
  uint64_t env_steps = 0;  // Where the results are compared.
  size_t trials = 0;       // Those with a result there. Of fewer than three all shares are 0.
  std::vector<double> shares;
};

// By the results at the highest number of env steps at which ten trials have one, or else where most have: few trials
// reach the last rungs of a sweep that stops the others.
Importance ImportanceOf(const Space& space, const std::vector<Trial>& trials, const Scheduler& scheduler);

}  // namespace skein
