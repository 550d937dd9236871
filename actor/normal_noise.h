// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/number/philox.h"

namespace skein {

// Draws standard normals of many random streams at once, several in each instruction. One by one they would take a
// third of the time of acting with networks of a few dozen units. Not thread-safe.
class NormalNoise {
 public:
  // Removes all streams. Each stream added afterwards draws `pairs` pairs of normals.
  void Begin(uint64_t seed, RandomPurpose purpose, int pairs);
  // Adds RandomStream(seed, purpose, a, b, position).
  void AddStream(uint32_t a, uint32_t b, uint32_t position);
  // Draws for all streams that were added.
  void Draw();

  // After Draw(): normal number 2 * pair + `second` of the stream that was added as number `stream`. Equal within 1e-14
  // to what RandomStream's Normal() returns at that call.
  double At(size_t stream, int pair, bool second) const {
    return (second ? second_ : first_)[stream * static_cast<size_t>(pairs_) + static_cast<size_t>(pair)];
  }

 private:
  uint64_t seed_ = 0;
  RandomPurpose purpose_ = RandomPurpose::kAction;
  int pairs_ = 0;
  size_t size_ = 0;  // Pairs of all streams. The vectors are padded to whole instructions.
  // One entry per pair: its block of four words (base/number/philox.h) and the normals made from it.
  std::vector<uint64_t> a_, b_, position_;
  std::vector<double> first_, second_;
};

}  // namespace skein
