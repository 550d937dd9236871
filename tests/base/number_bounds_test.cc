// SPDX-License-Identifier: Apache-2.0
#include "base/number/number_bounds.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(NumberBounds, FindsTheFirstValueBeyondOne) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  for (const float bound : {kNumberBound, kEpisodeBound, std::numeric_limits<float>::max()}) {
    std::vector<float> values(200, bound);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = -bound;
    values[7] = 0;
    values[8] = -0.0f;
    values[9] = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(FindBeyond(values.data(), values.size(), bound), 200u);
    EXPECT_EQ(FindBeyond(values.data(), 0, bound), 0u);
    // One after the other, from behind: alone in the last, incomplete group of four, and in each place of one.
    for (const size_t size : {200, 199, 198, 197}) {
      std::vector<float> some(values.begin(), values.begin() + size);
      for (size_t bad : {size - 1, size_t{130}, size_t{67}, size_t{66}, size_t{65}, size_t{64}, size_t{1}, size_t{0}}) {
        for (const float beyond : {std::nextafter(bound, kInfinity), -std::nextafter(bound, kInfinity), kInfinity,
                                   -kInfinity, kNan, -kNan}) {
          some[bad] = beyond;
          EXPECT_EQ(FindBeyond(some.data(), some.size(), bound), bad) << beyond;
        }
        EXPECT_EQ(FindBeyond(some.data(), bad, bound), bad);
      }
    }
  }
}

}  // namespace
}  // namespace skein
