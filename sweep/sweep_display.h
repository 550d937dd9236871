// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace skein {

// Shows a sweep: on a terminal a table redrawn in place below the news, otherwise the news, and the table's first line
// once in `line_period`. Not thread-safe. Does not own `out`.
class SweepDisplay {
 public:
  // `width`: columns of the terminal; 0 = `out` is not a terminal.
  SweepDisplay(std::FILE* out, int width, absl::Duration line_period = absl::Seconds(30))
      : out_(out), width_(width), line_period_(line_period) {}

  void Say(const std::string& line);
  void Update(const std::vector<std::string>& table, absl::Duration now);
  // Leaves the table on the screen.
  void Finish() { lines_ = 0; }

 private:
  void Erase();
  void Draw();

  std::FILE* const out_;
  const int width_;
  const absl::Duration line_period_;
  std::vector<std::string> table_;
  int lines_ = 0;  // Of the table, on the screen now.
  absl::Duration next_line_ = -absl::InfiniteDuration();
};

}  // namespace skein
