// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/process/exit_code.h"

namespace skein {

// Counts failures and hangs of a process between which the run took no step, however long each of them took: to start
// the process again would end the same way. Not thread-safe.
class VainFailures {
 public:
  explicit VainFailures(size_t most) : most_(most) {}

  // It ended with `code` when the run was at `env_steps`. False: it failed (kExitInternal) or hung (kExitTryAgain) more
  // than `most` times in a row, with the run at the same step.
  bool Take(int code, uint64_t env_steps) {
    if (code != kExitInternal && code != kExitTryAgain) {
      count_ = 0;
      return true;
    }
    count_ = env_steps == env_steps_ ? count_ + 1 : 1;
    env_steps_ = env_steps;
    return count_ <= most_;
  }

 private:
  const size_t most_;
  size_t count_ = 0;
  uint64_t env_steps_ = 0;
};

}  // namespace skein
