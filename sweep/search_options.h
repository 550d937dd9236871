// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "skein/v1/config.pb.h"
#include "sweep/search.h"
#include "sweep/space_file.h"

namespace skein {

// The options of a search, from its space file. `base` and `file` must outlive it. `max_trials`: as OpenSuggester() has
// it.
Search::Options SearchOptionsOf(const SweepFile& file, const v1::RunConfig& base, uint32_t max_trials);

}  // namespace skein
