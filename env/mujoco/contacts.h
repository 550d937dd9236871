// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <optional>
#include <string>

namespace skein {

// Adds to the model text `mjcf` a list of all pairs of geoms that may touch, so that MuJoCo need not search for
// contacts. Pairs are in the search's order, with the parameters that MuJoCo would mix. Where nothing may touch, the
// text is unchanged. `searched`: `mjcf`, compiled. docs/decisions/contacts-as-pairs.md
// Returns nothing where the list would not be equivalent or not be faster: many more pairs than geoms, geoms without a
// plain name, pairs or exclusions in the model, options that change the search, gaps, margins of bodies with several
// geoms, or solver parameters that differ between two geoms (friction, condim and margin may differ).
std::optional<std::string> ListContacts(const std::string& mjcf, const mjModel& searched);

// Whether MuJoCo has read the list as it was meant. `listed`: the text that ListContacts returned for `searched`,
// compiled. It has not where the text goes on after its root element, so that the list is not in that, or where
// defaults change what a pair does not say.
bool ListsAllContacts(const mjModel& listed, const mjModel& searched);

// Whether some two bodies may touch with several pairs of geoms, other than those of a single plane. The search then
// has an order of its own within these, which a list has not in every model.
bool TouchWithSeveralGeoms(const mjModel& searched);

// Changes the model so that only listed pairs can touch.
void CollideOnlyPairs(mjModel* model);

}  // namespace skein
