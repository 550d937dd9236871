// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "sweep/run_launcher.h"
#include "sweep/search.h"
#include "sweep/slot_use.h"
#include "sweep/space_file.h"
#include "sweep/sweep_record.h"

namespace skein {

// Outcome of a sweep, for SummaryText() and SummaryJson().
struct SweepOutcome {
  bool stopped = false;        // By a signal.
  bool out_of_budget = false;  // max_core_hours.
  bool finished = false;       // Neither, and nothing has failed.
  SlotUse slots;               // Since this process has begun; of search and test.
};

// What is said at the end: number of trials, how busy the slots were, the best one and the command that trains it
// again, the test.
std::string SummaryText(const SweepFile& file, const SweepRecord& record, const Scheduler& scheduler,
                        const RunLauncher& launcher, const Search::Options& options, const std::string& folder,
                        const SweepOutcome& outcome);

// The same as JSON, without folder and exit code.
nlohmann::ordered_json SummaryJson(const SweepFile& file, const SweepRecord& record, const Scheduler& scheduler,
                                   const RunLauncher& launcher, const Search::Options& options,
                                   const SweepOutcome& outcome);

}  // namespace skein
