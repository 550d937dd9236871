// SPDX-License-Identifier: Apache-2.0
#include "base/number/exact_moments.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "base/number/number_bounds.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using Words = std::pair<std::vector<int64_t>, std::vector<int64_t>>;

Words WordsOf(const ExactMoments& moments) {
  Words words = {std::vector<int64_t>(2 * moments.size()), std::vector<int64_t>(2 * moments.size())};
  moments.WriteWords(words.first.data(), words.second.data());
  return words;
}

std::vector<std::vector<float>> Rows(double mean, double deviation) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<std::vector<float>> rows(1000, std::vector<float>(3));
  for (auto& row : rows) {
    for (float& value : row) value = static_cast<float>(normal(random));
  }
  return rows;
}

TEST(ExactMoments, NeitherOrderNorGroupingChangesABit) {
  std::vector<std::vector<float>> rows = Rows(-3, 1e4);
  ExactMoments whole(3);
  for (const auto& row : rows) whole.Add(row.data());
  std::reverse(rows.begin(), rows.end());
  for (const size_t group : {1u, 7u, 999u}) {
    ExactMoments merged(3), part(3);
    for (size_t i = 0; i < rows.size(); ++i) {
      part.Add(rows[i].data());
      if (i % group != 0 && i + 1 < rows.size()) continue;
      const Words words = WordsOf(part);
      merged.AddWords(words.first, words.second);
      part.Clear();
    }
    EXPECT_EQ(WordsOf(merged), WordsOf(whole)) << group;
  }
}

TEST(ExactMoments, SumsOfRowsArePossibleAndOthersAreNot) {
  for (const auto& [mean, deviation] :
       std::vector<std::pair<double, double>>{{0, 1}, {kNumberBound, 0}, {-kNumberBound, 0}, {0, 1e-11}, {0.1, 0}}) {
    ExactMoments moments(3);
    for (const auto& row : Rows(mean, deviation)) moments.Add(row.data());
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(moments.Possible(i, 1000)) << mean << " " << deviation;
    EXPECT_EQ(moments.Possible(0, 0), false) << mean << " " << deviation;
  }
  const auto possible = [](std::vector<int64_t> sum, std::vector<int64_t> square_sum, int64_t rows) {
    ExactMoments moments(1);
    moments.AddWords(sum, square_sum);
    return moments.Possible(0, rows);
  };
  constexpr int64_t kOne = int64_t{1} << 40, kSquareOne = int64_t{1} << 48;
  EXPECT_TRUE(possible({0, 0}, {0, 0}, 0));
  EXPECT_TRUE(possible({3 * kOne, 0}, {5 * kSquareOne, 0}, 2));   // 1 and 2.
  EXPECT_FALSE(possible({3 * kOne, 0}, {4 * kSquareOne, 0}, 2));  // Of a negative variance.
  EXPECT_FALSE(possible({0, 0}, {-1, -1}, 2));
  EXPECT_FALSE(possible({0, 0}, {0, int64_t{1} << 40}, 2));  // Beyond the bound.
  EXPECT_FALSE(possible({0, int64_t{1} << 20}, {kSquareOne, 0}, 2));
}

// The plain sums, in long double, two passes.
TEST(ExactMoments, MeanAndVarianceEqualTheOracle) {
  for (const auto& [mean, deviation] :
       std::vector<std::pair<double, double>>{{0, 1}, {1000, 0.01}, {-2e5, 3}, {0, 1e-4}}) {
    const std::vector<std::vector<float>> rows = Rows(mean, deviation);
    ExactMoments moments(3);
    for (const auto& row : rows) moments.Add(row.data());
    for (size_t i = 0; i < 3; ++i) {
      long double want_mean = 0, want_variance = 0;
      for (const auto& row : rows) want_mean += row[i] / 1000.0L;
      for (const auto& row : rows) want_variance += (row[i] - want_mean) * (row[i] - want_mean) / 1000.0L;
      EXPECT_NEAR(moments.Mean(i, 1000), static_cast<double>(want_mean), 1e-11);
      EXPECT_NEAR(moments.Variance(i, 1000) / static_cast<double>(want_variance), 1, 1e-5) << mean << " " << deviation;
    }
  }
}

TEST(ExactMoments, TheLargestNumbersFit) {
  const std::vector<float> row = {kNumberBound, -kNumberBound};
  ExactMoments moments(2);
  for (int i = 0; i < 3; ++i) moments.Add(row.data());
  Words words = WordsOf(moments);
  for (int doubling = 0; doubling < 34; ++doubling) {  // 3 x 2^34 rows.
    moments.AddWords(words.first, words.second);
    words = WordsOf(moments);
  }
  const double rows = 3 * std::pow(2, 34);
  EXPECT_DOUBLE_EQ(moments.Mean(0, rows), 1e6);
  EXPECT_DOUBLE_EQ(moments.Mean(1, rows), -1e6);
  EXPECT_NEAR(moments.Variance(0, rows), 0, 1e-3);
}

}  // namespace
}  // namespace skein
