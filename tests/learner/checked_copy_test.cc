// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/checked_copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/policy/simd_levels.h"

namespace skein {
namespace {

constexpr float kBound = 100;

TEST(CopyRowsAndFindBeyond, CopiesAllAndFindsWhatOneAfterTheOtherFinds) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    for (size_t width : {1, 3, 4, 5, 8, 15, 16, 17, 31, 64, 70}) {
      constexpr size_t kRows = 3;
      const size_t count = kRows * width, stride = width + width % 3;
      // With none that is bad, then each in turn, and the one after it too.
      for (size_t bad = 0; bad <= count; ++bad) {
        for (const float beyond : {nan, -nan, infinity, -infinity, std::nextafter(kBound, infinity), -1e30f}) {
          std::vector<float> values(count);
          for (size_t i = 0; i < count; ++i) values[i] = i % 2 == 0 ? kBound : -0.25f * static_cast<float>(i);
          for (size_t i = bad; i < std::min(bad + 2, count); ++i) values[i] = beyond;
          // At every distance from where floats belong, to any place in a cache line, and between what must stay.
          const size_t offset = bad % 7, shift = 1 + bad % 16;
          std::string bytes(offset + count * sizeof(float), 'x');
          std::memcpy(bytes.data() + offset, values.data(), count * sizeof(float));
          std::vector<float> copy(shift + kRows * stride + 1, 77);
          EXPECT_EQ(CopyRowsAndFindBeyond(bytes.data() + offset, kRows, width, stride, kBound, copy.data() + shift),
                    bad);
          std::vector<float> want(copy.size(), 77);
          for (size_t i = 0; i < count; ++i) want[shift + i / width * stride + i % width] = values[i];
          EXPECT_EQ(std::memcmp(copy.data(), want.data(), copy.size() * sizeof(float)), 0);
        }
      }
    }
    EXPECT_EQ(CopyRowsAndFindBeyond(nullptr, 0, 5, 5, kBound, nullptr), 0u);
  }
}

}  // namespace
}  // namespace skein
