// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// While this object lives, what is written to standard output goes to standard error instead, also by processes that
// are started meanwhile. One at a time.
class DivertedOutput {
 public:
  DivertedOutput();
  ~DivertedOutput();
  DivertedOutput(const DivertedOutput&) = delete;
  DivertedOutput& operator=(const DivertedOutput&) = delete;

 private:
  int output_ = -1;  // A copy of standard output; -1 = it was closed.
};

}  // namespace skein
