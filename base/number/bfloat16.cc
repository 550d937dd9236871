// SPDX-License-Identifier: Apache-2.0
#include "base/number/bfloat16.h"

#include <cstring>

namespace skein {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The upper half is the result, the lower half garbage. Without branches, so that several are rounded at a time.
uint32_t Rounded(uint32_t bits) {
  constexpr uint32_t kInfinity = 0x7f800000, kLargest = 0x7f7f0000, kQuiet = 0x00400000;
  const uint32_t sign = bits & 0x80000000, magnitude = bits & 0x7fffffff;
  const uint32_t nearest = magnitude + 0x7fff + ((magnitude >> 16) & 1);
  const uint32_t finite = nearest < kInfinity ? nearest : kLargest;
  const uint32_t special = magnitude == kInfinity ? kInfinity : magnitude | kQuiet;
  return sign | (magnitude < kInfinity ? finite : special);
}

}  // namespace

void ToBfloat16(const float* from, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<uint16_t>(Rounded(BitsOf(from[i])) >> 16);
}

void FromBfloat16(const uint16_t* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = FromBits(uint32_t{from[i]} << 16);
}

void RoundToBfloat16(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = FromBits(Rounded(BitsOf(values[i])) & 0xffff0000);
}

}  // namespace skein
