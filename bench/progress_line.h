// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "absl/time/time.h"

namespace skein {

// Shows what is being measured, redrawn in place on a terminal; prints nothing elsewhere. Not thread-safe. Does not own
// `out`.
class ProgressLine {
 public:
  // `width`: columns of the terminal; 0 = `out` is not a terminal.
  ProgressLine(std::FILE* out, int width) : out_(out), width_(width) {}
  ~ProgressLine() { Clear(); }

  // `left`: expected remaining time of all measurements; negative = unknown.
  void Show(const std::string& text, absl::Duration left);
  void Clear();

 private:
  std::FILE* const out_;
  const int width_;
  bool shown_ = false;
};

}  // namespace skein
