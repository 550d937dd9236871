// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "cli/progress_text.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Shows a run's progress: on a terminal a text block redrawn in place, otherwise one line every `line_period`. Not
// thread-safe. Does not own `out`.
class ProgressDisplay {
 public:
  // `width`: columns of the terminal; 0 = `out` is not a terminal.
  ProgressDisplay(std::FILE* out, int width, absl::Duration line_period = absl::Seconds(5))
      : out_(out), width_(width), line_period_(line_period) {}

  // Says each of the status's warnings once. `now` is MonotonicNow(). With `last` a line is printed even if
  // `line_period` has not passed.
  void Update(const v1::StatusResponse& status, const ProgressNotes& notes, absl::Duration now, bool last = false);
  // Prints a permanent line above the block.
  void Say(const std::string& line);
  // Leaves the block on the screen; later output is printed below it.
  void Finish();

 private:
  void EraseBlock();

  std::FILE* const out_;
  const int width_;
  const absl::Duration line_period_;
  int block_lines_ = 0;  // On the screen now.
  std::string block_;
  std::set<std::string> warned_;  // Warnings shown so far.
  absl::Duration next_line_ = -absl::InfiniteDuration();
};

}  // namespace skein
