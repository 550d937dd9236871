// SPDX-License-Identifier: Apache-2.0
#include "actor/normal_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "policy/simd.h"

namespace skein {
namespace {

constexpr uint64_t kSeed = 0x123456789abcdef0;

struct Stream {
  uint32_t a, b, position;
};

// Streams with every kind of number in their counters; positions wrap around.
std::vector<Stream> SomeStreams(int count) {
  std::vector<Stream> streams;
  for (int i = 0; i < count; ++i) {
    const uint32_t wide = 0x9e3779b9u * static_cast<uint32_t>(i);
    streams.push_back({static_cast<uint32_t>(i), wide, i % 5 == 0 ? std::numeric_limits<uint32_t>::max() : wide >> 7});
  }
  return streams;
}

class NormalNoiseTest : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > best_) GTEST_SKIP() << "this processor is not that wide";
    ActiveSimdLevel() = GetParam();
  }
  void TearDown() override { ActiveSimdLevel() = best_; }

  const SimdLevel best_ = ActiveSimdLevel();
};

// Whatever the number of streams and pairs leaves over of an instruction.
TEST_P(NormalNoiseTest, IsWhatEachStreamDrawsByItself) {
  NormalNoise noise;
  double worst = 0;
  for (const int pairs : {1, 3, 8}) {
    for (const int count : {1, 5, 16, 2000}) {
      noise.Begin(kSeed, RandomPurpose::kAction, pairs);
      const std::vector<Stream> streams = SomeStreams(count);
      for (const Stream& stream : streams) noise.AddStream(stream.a, stream.b, stream.position);
      noise.Draw();
      for (int i = 0; i < count; ++i) {
        RandomStream alone(kSeed, RandomPurpose::kAction, streams[i].a, streams[i].b, streams[i].position);
        for (int k = 0; k < 2 * pairs; ++k) {
          const double want = alone.Normal(), got = noise.At(i, k / 2, k % 2 != 0);
          // Near a zero of the sine the argument's rounding, in radians there and in turns here, is what is left.
          ASSERT_NEAR(got, want, 1e-14) << "stream " << i << " of " << count << ", number " << k;
          worst = std::max(worst, std::fabs(got - want));
        }
      }
    }
  }
  EXPECT_GT(worst, 0) << "nothing was computed in another way";
}

INSTANTIATE_TEST_SUITE_P(Widths, NormalNoiseTest,
                         testing::Values(SimdLevel::kBase, SimdLevel::kAvx2, SimdLevel::kAvx512));

}  // namespace
}  // namespace skein
