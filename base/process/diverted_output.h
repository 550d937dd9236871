// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// Sends standard output to standard error for its lifetime, of processes that are started meanwhile, too. One object at
// a time.
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
