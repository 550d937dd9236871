// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "learner/ranks/collective.h"

namespace skein {

// Runs `of_rank` on `ranks` threads, each with its end of a group over Gloo, until all have returned.
void RunRanks(int ranks, const std::function<void(Collective* collective)>& of_rank);

}  // namespace skein
