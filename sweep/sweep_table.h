// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sweep/scheduler.h"
#include "sweep/space_file.h"
#include "sweep/study.h"

namespace skein {

// The numbers that SweepTable shows beside the trials.
struct SweepWork {
  double steps_done = 0, steps_expected = 0;  // Env steps of all trials.
  double core_seconds = 0;
  uint32_t busy = 0, slots = 0;
};

// The table of a sweep that is under way: a line of counts with the time that is left, then the best trials.
//   Study -> SweepTable -> SweepDisplay
// The time left is what is expected at the rate of env steps since the first call. Time is passed in. Not thread-safe.
class SweepTable {
 public:
  // `file` must outlive this.
  explicit SweepTable(const SweepFile* file) : file_(*file) {}

  // `scheduler`: of this study.
  std::vector<std::string> Lines(const Study& study, const Scheduler& scheduler, const SweepWork& work,
                                 absl::Duration now);

 private:
  struct Begin {
    absl::Duration at;
    double steps_done = 0;
  };

  std::string TrialLine(const Trial& trial, const Study& study, const Scheduler& scheduler) const;
  std::string TimeLeft(const SweepWork& work, absl::Duration now);

  const SweepFile& file_;
  std::optional<Begin> began_;
};

}  // namespace skein
