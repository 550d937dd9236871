// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "cli/progress_text.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Shows a run's progress: one block redrawn in place on a terminal, elsewhere a line every `line_period`.
// Not thread-safe. Does not own `out`.
class ProgressDisplay {
 public:
  // `width` is the terminal's in columns; 0 = `out` is no terminal.
  ProgressDisplay(std::FILE* out, int width, absl::Duration line_period = absl::Seconds(5))
      : out_(out), width_(width), line_period_(line_period) {}

  // `now` is MonotonicNow(). `last` is shown whenever the last line was.
  void Update(const v1::StatusResponse& status, const ProgressNotes& notes, absl::Duration now, bool last = false);
  // A line that stays, above the block.
  void Say(const std::string& line);
  // The block stays as it is; what follows is printed below it.
  void Finish();

 private:
  void EraseBlock();

  std::FILE* const out_;
  const int width_;
  const absl::Duration line_period_;
  int block_lines_ = 0;  // On the screen now.
  std::string block_;
  absl::Duration next_line_ = -absl::InfiniteDuration();
};

}  // namespace skein
