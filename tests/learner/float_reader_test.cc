// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/float_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

Pieces Cut(const std::string& bytes, size_t piece_bytes) {
  Pieces pieces;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    pieces.emplace_back(bytes.data() + at, std::min(piece_bytes, bytes.size() - at));
    pieces.emplace_back();  // An empty piece in between.
  }
  return pieces;
}

TEST(FloatReader, ReadsRowsHoweverTheyAreCutAndTellsTheFirstBeyond) {
  constexpr size_t kRows = 10, kWidth = 9, kStride = 11;
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  for (size_t piece_bytes : {1, 3, 4, 6, 30, 64, 400}) {
    const Pieces pieces = Cut(bytes, piece_bytes);
    FloatReader reader({pieces, 0}, false);
    std::vector<float> read(kRows * kStride, -1);
    EXPECT_EQ(reader.ReadRows(2, kWidth, kStride, 50, read.data()), 2 * kWidth);
    EXPECT_EQ(reader.ReadRows(7, kWidth, kStride, 50, &read[2 * kStride]), 33u);  // 51, which comes 33 after 18.
    EXPECT_EQ(reader.ReadRows(1, kWidth, kStride, 89, &read[9 * kStride]), kWidth);
    for (size_t i = 0; i < read.size(); ++i) {
      const size_t row = i / kStride, column = i % kStride;
      EXPECT_EQ(read[i], column < kWidth ? values[row * kWidth + column] : -1) << piece_bytes;
    }
  }
}

TEST(FloatReader, ReadsNothingOfRowsThatHaveNothing) {
  const Pieces pieces = Cut("abcdefgh", 4);
  FloatReader reader({pieces, 0}, false);
  EXPECT_EQ(reader.ReadRows(3, 0, 0, 1, nullptr), 0u);
  EXPECT_EQ(reader.ReadRows(0, 3, 3, 1, nullptr), 0u);
}

TEST(FloatReader, TellsTheFirstBeyondOfNarrowOnes) {
  std::vector<float> values(3000, 1);
  values[1500] = values[2999] = 1e9f;
  std::vector<uint16_t> narrow(values.size());
  ToBfloat16(values.data(), values.size(), narrow.data());
  const std::string bytes(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(uint16_t));
  const Pieces pieces = Cut(bytes, 101);
  for (size_t width : {3000, 30}) {
    FloatReader reader({pieces, 0}, true);
    std::vector<float> read(values.size());
    EXPECT_EQ(reader.ReadRows(read.size() / width, width, width, kNumberBound, read.data()), 1500u);
    EXPECT_EQ(read[1499], 1);
    EXPECT_EQ(read[2998], 1);
    EXPECT_GT(read[2999], 0.9e9f);
  }
}

}  // namespace
}  // namespace skein
