// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace skein {

// Counts failures of a process between which the run took no step, however long each of them took: to start the process
// again would end the same way. Not thread-safe.
class VainFailures {
 public:
  explicit VainFailures(size_t most) : most_(most) {}

  // It failed when the run was at `env_steps`. False: more than `most` times in a row, with the run at the same step.
  bool Take(uint64_t env_steps) {
    count_ = env_steps == env_steps_ ? count_ + 1 : 1;
    env_steps_ = env_steps;
    return count_ <= most_;
  }
  // It ended otherwise.
  void Clear() { count_ = 0; }

 private:
  const size_t most_;
  size_t count_ = 0;
  uint64_t env_steps_ = 0;
};

}  // namespace skein
