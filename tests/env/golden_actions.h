// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

// The random actions of scripts/make_env_golden.py: reals in [-bound, bound].
class GoldenActions {
 public:
  GoldenActions(uint64_t seed, float bound) : state_(seed), bound_(bound) {}
  std::vector<float> Next(int size) {
    std::vector<float> action(size);
    for (float& a : action) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      a = (static_cast<float>(state_ >> 48) / 32768 - 1) * bound_;
    }
    return action;
  }

 private:
  uint64_t state_;
  const float bound_;
};

}  // namespace skein
