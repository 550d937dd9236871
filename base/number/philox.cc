// SPDX-License-Identifier: Apache-2.0
#include "base/number/philox.h"

#include <cmath>
#include <numbers>

namespace skein {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kPhiloxKeyStep0;
    key[1] += kPhiloxKeyStep1;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, RandomPurpose purpose, uint64_t a, uint64_t b, uint32_t position)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{position, static_cast<uint32_t>(b), static_cast<uint32_t>(a), static_cast<uint32_t>(purpose)},
      block_{} {}

uint32_t RandomStream::NextUint32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double RandomStream::Uniform() {
  const uint64_t high = NextUint32();
  const uint64_t low = NextUint32();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
}

double RandomStream::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

double RandomStream::Normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));  // 1 - [0, 1) is never 0.
  const double angle = 2.0 * std::numbers::pi * Uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

uint32_t RandomStream::Below(uint32_t bound) {
  // Lemire 2019, "Fast random integer generation in an interval": the few low products that would favour
  // some results are drawn again.
  uint64_t product = uint64_t{NextUint32()} * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t threshold = -bound % bound;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{NextUint32()} * bound;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace skein
