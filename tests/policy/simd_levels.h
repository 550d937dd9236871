// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "policy/simd.h"

namespace skein {

// Every instruction set that this processor has, from the least.
inline std::vector<SimdLevel> SimdLevels() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel level : {SimdLevel::kBase, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (level <= ActiveSimdLevel()) levels.push_back(level);
  }
  return levels;
}

// Computes at `level` until it is destroyed.
class ScopedSimdLevel {
 public:
  explicit ScopedSimdLevel(SimdLevel level) : before_(ActiveSimdLevel()) { ActiveSimdLevel() = level; }
  ~ScopedSimdLevel() { ActiveSimdLevel() = before_; }
  ScopedSimdLevel(const ScopedSimdLevel&) = delete;
  ScopedSimdLevel& operator=(const ScopedSimdLevel&) = delete;

 private:
  const SimdLevel before_;
};

}  // namespace skein
