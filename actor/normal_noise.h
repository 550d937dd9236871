// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/number/philox.h"

namespace skein {

// Standard normals of many random streams at once, several in each instruction: one by one they take a third of what
// acting takes with networks of a few dozen units. Not thread-safe.
class NormalNoise {
 public:
  // Forgets all streams; each of those to be added draws this many pairs of normals.
  void Begin(uint64_t seed, RandomPurpose purpose, int pairs);
  // Adds RandomStream(seed, purpose, a, b, position).
  void AddStream(uint32_t a, uint32_t b, uint32_t position);
  // Draws for all streams that were added.
  void Draw();

  // After Draw(), of the stream that was added as number `stream`: its normal number 2 * pair + `second`, what calling
  // Normal() so often returns, within 1e-14.
  double At(size_t stream, int pair, bool second) const {
    return (second ? second_ : first_)[stream * static_cast<size_t>(pairs_) + static_cast<size_t>(pair)];
  }

 private:
  uint64_t seed_ = 0;
  RandomPurpose purpose_ = RandomPurpose::kAction;
  int pairs_ = 0;
  size_t size_ = 0;  // Pairs of all streams. The vectors are longer: whole instructions.
  // A pair each: its block of four words (base/number/philox.h) and what came of it.
  std::vector<uint64_t> a_, b_, position_;
  std::vector<double> first_, second_;
};

}  // namespace skein
