// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sweep/space.h"
#include "sweep/trial.h"

namespace skein {

// The share of the spread of the results that each parameter explains by itself, from 0 to 1: epsilon squared of a
// one-way analysis of variance (Kelley 1935), that is eta squared without what chance alone would explain. The groups
// are a choice's values, or the quarters of a number's sorted values. Trials are those with a result at the highest
// rung that any has; 0 for all if fewer than three have.
std::vector<double> Importance(const Space& space, const std::vector<Trial>& trials);

}  // namespace skein
