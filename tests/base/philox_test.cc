// SPDX-License-Identifier: Apache-2.0
#include "base/number/philox.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

TEST(Philox4x32, GivesTheKnownAnswersOfRandom123) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(RandomStream, ReadsTheBlocksOfItsCounterInOrder) {
  // Key = the seed's halves, counter = {position, b, a, purpose}.
  RandomStream stream(0x0000000700000005, RandomPurpose::kAction, 11, 13, 17);
  for (uint32_t block = 17; block < 20; ++block) {
    for (const uint32_t word : Philox4x32({block, 13, 11, 3}, {5, 7})) EXPECT_EQ(stream.NextUint32(), word);
  }
}

TEST(RandomStream, PositionIsTheIndexOfABlockOfFourWords) {
  RandomStream from_start(1, RandomPurpose::kAction, 2, 3);
  for (int i = 0; i < 4 * 5; ++i) from_start.NextUint32();
  RandomStream from_position(1, RandomPurpose::kAction, 2, 3, 5);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(from_start.NextUint32(), from_position.NextUint32());
}

TEST(RandomStream, DiffersBySeedPurposeAAndB) {
  const std::vector<RandomStream> streams = {RandomStream(1, RandomPurpose::kEnvReset, 0, 0),
                                             RandomStream(2, RandomPurpose::kEnvReset, 0, 0),
                                             RandomStream(uint64_t{1} << 32 | 1, RandomPurpose::kEnvReset, 0, 0),
                                             RandomStream(1, RandomPurpose::kAction, 0, 0),
                                             RandomStream(1, RandomPurpose::kEnvReset, 1, 0),
                                             RandomStream(1, RandomPurpose::kEnvReset, 0, 1)};
  std::vector<uint32_t> first;
  for (RandomStream stream : streams) first.push_back(stream.NextUint32());
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(first[i], first[j]) << i << " " << j;
  }
}

TEST(RandomStream, CopiesAreIndependent) {
  RandomStream original(1, RandomPurpose::kInit, 0, 0);
  original.Normal();
  RandomStream copy = original;
  const double spare = original.Normal();
  original.NextUint32();
  EXPECT_EQ(copy.Normal(), spare);
}

TEST(RandomStream, UniformIsTheTop53BitsOfTwoWords) {
  RandomStream words(9, RandomPurpose::kEnvStep, 0, 0);
  RandomStream stream(9, RandomPurpose::kEnvStep, 0, 0);
  for (int i = 0; i < 100; ++i) {
    const uint64_t high = words.NextUint32();
    const uint64_t low = words.NextUint32();
    const uint64_t top = (high * 4294967296 + low) / 2048;  // 64 - 53 = 11 bits less.
    EXPECT_EQ(stream.Uniform(), static_cast<double>(top) / 9007199254740992.0);
  }
}

TEST(RandomStream, UniformHasTheMomentsOfTheUniformDistribution) {
  RandomStream stream(3, RandomPurpose::kEnvReset, 0, 0);
  constexpr int kDraws = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.Uniform(-1, 1);
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  // Variance of U(-1, 1) is 1/3; five standard errors of the mean are 5 * sqrt(1/3 / 1e5) = 0.0091, of the second
  // moment (variance 1/5 - 1/9 = 4/45) 5 * sqrt(4/45 / 1e5) = 0.0047.
  EXPECT_NEAR(sum / kDraws, 0, 0.0092);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.0048);
}

TEST(RandomStream, NormalsArePairsOfBoxAndMuller) {
  RandomStream uniforms(4, RandomPurpose::kAction, 1, 1);
  RandomStream stream(4, RandomPurpose::kAction, 1, 1);
  for (int i = 0; i < 100; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - uniforms.Uniform()));
    const double angle = 2 * std::numbers::pi * uniforms.Uniform();
    EXPECT_DOUBLE_EQ(stream.Normal(), radius * std::cos(angle));
    EXPECT_DOUBLE_EQ(stream.Normal(), radius * std::sin(angle));
  }
}

TEST(RandomStream, NormalHasTheMomentsOfTheStandardNormal) {
  RandomStream stream(5, RandomPurpose::kAction, 0, 0);
  constexpr int kDraws = 100000;
  double moments[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.Normal();
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(value, k) / kDraws;
  }
  // Five standard errors: sqrt(1, 2, 15, 96 / 1e5) * 5 = 0.016, 0.022, 0.061, 0.155.
  EXPECT_NEAR(moments[1], 0, 0.016);
  EXPECT_NEAR(moments[2], 1, 0.023);
  EXPECT_NEAR(moments[3], 0, 0.062);
  EXPECT_NEAR(moments[4], 3, 0.156);
}

TEST(RandomStream, BelowIsUniformOverItsRange) {
  RandomStream stream(6, RandomPurpose::kPermutation, 0, 0);
  constexpr int kDraws = 60000;
  int count[6] = {};
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t value = stream.Below(6);
    ASSERT_LT(value, 6u);
    ++count[value];
  }
  // Each is binomial(60000, 1/6): mean 10000, standard deviation 91.3; five of them are 457.
  for (const int one : count) EXPECT_NEAR(one, 10000, 457);
}

TEST(RandomStream, BelowIsUnbiasedWhereTheRangeDoesNotDivideTheWords) {
  // 3 * 2^30: of 2^32 words a quarter would favour every third value; rejection leaves each third with 1/3.
  constexpr uint32_t kBound = 3u << 30;
  RandomStream stream(7, RandomPurpose::kPermutation, 0, 0);
  constexpr int kDraws = 30000;
  int remainder[3] = {};
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t value = stream.Below(kBound);
    ASSERT_LT(value, kBound);
    ++remainder[value % 3];
  }
  // Binomial(30000, 1/3): mean 10000, standard deviation 81.6; five of them are 408. Without rejection: 15000, 7500,
  // 7500.
  for (const int one : remainder) EXPECT_NEAR(one, 10000, 409);
}

TEST(RandomStream, BelowOneIsZero) {
  RandomStream stream(8, RandomPurpose::kPermutation, 0, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stream.Below(1), 0u);
}

}  // namespace
}  // namespace skein
