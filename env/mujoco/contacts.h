// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace skein {

// Adds to the model text `mjcf` a list of all pairs of geoms that may touch, so that MuJoCo need not search for
// contacts. Pairs are in the search's order, with the parameters that MuJoCo would mix. `searched`: `mjcf`, compiled.
// docs/decisions/contacts-as-pairs.md
// Returns "" where the list would not be equivalent or not be shorter: more pairs than geoms, geoms without a name,
// pairs or exclusions in the text, margins, or parameters that differ between two geoms (friction and condim may
// differ).
std::string ListContacts(const std::string& mjcf, const mjModel& searched);

// Changes the model so that only listed pairs can touch.
void CollideOnlyPairs(mjModel* model);

}  // namespace skein
