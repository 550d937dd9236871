// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sweep/scheduler.h"
#include "sweep/space_file.h"
#include "sweep/study.h"

namespace skein {

// A sweep as one HTML file that needs nothing else: the trials as lines over parallel axes, how much each parameter
// matters, the results by rung, a table. `running`: the page loads itself again every ten seconds.
std::string SweepPage(const SweepFile& file, const Study& study, const Scheduler& scheduler, bool running);

}  // namespace skein
