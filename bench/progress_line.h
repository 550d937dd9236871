// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "absl/time/time.h"

namespace skein {

// What is being measured, redrawn in place on a terminal; nothing elsewhere. Not thread-safe. Does not own `out`.
class ProgressLine {
 public:
  // `width` is the terminal's in columns; 0 = `out` is no terminal.
  ProgressLine(std::FILE* out, int width) : out_(out), width_(width) {}
  ~ProgressLine() { Clear(); }

  // `left`: how long all of it is still expected to take; negative = unknown.
  void Show(const std::string& text, absl::Duration left);
  void Clear();

 private:
  std::FILE* const out_;
  const int width_;
  bool shown_ = false;
};

}  // namespace skein
