// SPDX-License-Identifier: Apache-2.0
#include "base/number/bfloat16.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace skein {
namespace {

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float Widened(uint16_t value) {
  float wide;
  FromBfloat16(&value, 1, &wide);
  return wide;
}

uint16_t Narrowed(float value) {
  uint16_t narrow;
  ToBfloat16(&value, 1, &narrow);
  return narrow;
}

TEST(Bfloat16, ComesBackAsItWas) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<uint16_t>(bits);
    const float wide = Widened(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(Widened(Narrowed(wide))));
    } else {
      ASSERT_EQ(Narrowed(wide), value);
    }
  }
}

// Of the two neighbours in bfloat16 the nearer one, at equal distance the one whose last bit is 0.
float Nearest(float value) {
  const float magnitude = std::fabs(value);
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  const auto below = static_cast<uint16_t>(bits >> 16);
  const double down = Widened(below);
  if (below == 0x7f7f) return std::copysign(static_cast<float>(down), value);  // The largest there is.
  const double up = Widened(static_cast<uint16_t>(below + 1));
  const double to_down = magnitude - down, to_up = up - magnitude;
  const bool takes_down = to_down < to_up || (to_down == to_up && below % 2 == 0);
  return std::copysign(static_cast<float>(takes_down ? down : up), value);
}

TEST(Bfloat16, IsTheNearestWithTiesToEven) {
  std::mt19937 random(5);
  std::vector<float> values = {0, -0.0f, 1, 1e-45f, std::numeric_limits<float>::min(), 3.3e38f};
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    // Anything, then ties, and what lies next to ties.
    for (const uint32_t near : {bits, (bits & 0xffff0000) | 0x8000, (bits & 0xffff0000) | 0x8001}) {
      if (std::isfinite(FromBits(near))) values.push_back(FromBits(near));
    }
  }
  std::vector<float> rounded = values;
  RoundToBfloat16(rounded.data(), rounded.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(rounded[i], Nearest(values[i])) << values[i];
    ASSERT_EQ(std::signbit(rounded[i]), std::signbit(values[i]));
    ASSERT_EQ(Widened(Narrowed(values[i])), rounded[i]);
  }
  // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between that and 1 + 2^-6.
  EXPECT_EQ(Widened(Narrowed(1 + 0x1p-8f)), 1);
  EXPECT_EQ(Widened(Narrowed(1 + 3 * 0x1p-8f)), 1 + 0x1p-6f);
}

TEST(Bfloat16, KeepsWhatIsFiniteFiniteAndWhatIsNotAsItIs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Widened(Narrowed(std::numeric_limits<float>::max())), Widened(0x7f7f));
  EXPECT_EQ(Widened(Narrowed(-std::numeric_limits<float>::max())), -Widened(0x7f7f));
  EXPECT_EQ(Widened(Narrowed(kInfinity)), kInfinity);
  EXPECT_EQ(Widened(Narrowed(-kInfinity)), -kInfinity);
  // The first one's only bits are in the half that is dropped.
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(Widened(Narrowed(FromBits(bits)))));
  }
}

}  // namespace
}  // namespace skein
