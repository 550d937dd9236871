// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace skein {

// `mjcf` with every pair of geoms that may touch listed, in the order in which a search finds them and with the
// parameters it would mix; `searched` is that text compiled. docs/decisions/contacts-as-pairs.md
// "" where a list would not be the same or not be shorter: more pairs than geoms, geoms without a name, pairs or
// exclusions in the text, margins, or parameters that differ between two geoms (friction and condim may).
std::string ListContacts(const std::string& mjcf, const mjModel& searched);

// From now on no geoms touch but listed pairs.
void CollideOnlyPairs(mjModel* model);

}  // namespace skein
