// SPDX-License-Identifier: Apache-2.0
#include "policy/packed_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/dense_kernels.h"

namespace skein {
namespace {

TEST(PackedLayer, MapsRowsAndPadsThemWithZeros) {
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6}, bias = {10, 20};
  const PackedLayer layer(weight.data(), bias.data(), 3, 2);
  // Rows that stand four floats apart.
  const std::vector<float> x = {1, 1, 1, -1, 0, 1, 0, -1};
  std::vector<float> y(2 * Padded(2), 99);
  layer.Forward(x.data(), 4, 2, y.data());
  EXPECT_EQ(y[0], 16);              // 1 + 2 + 3 + 10
  EXPECT_EQ(y[1], 35);              // 4 + 5 + 6 + 20
  EXPECT_EQ(y[Padded(2)], 12);      // 2 + 10
  EXPECT_EQ(y[Padded(2) + 1], 25);  // 5 + 20
  for (int64_t i = 2; i < Padded(2); ++i) EXPECT_EQ(y[i], 0);
}

TEST(PackedLayer, SeesAChangeWhenItPacks) {
  std::vector<float> weight = {1}, bias = {0};
  PackedLayer layer(weight.data(), bias.data(), 1, 1);
  weight[0] = 5;
  bias[0] = 2;
  const float x = 3;
  std::vector<float> y(Padded(1));
  layer.Forward(&x, 1, 1, y.data());
  EXPECT_EQ(y[0], 3);
  layer.Pack();
  layer.Forward(&x, 1, 1, y.data());
  EXPECT_EQ(y[0], 17);  // 5 * 3 + 2
}

// Panels change where weights lie, not the order of any sum.
TEST(PackedLayer, AWideOneGivesTheBitsOfOnePlainProduct) {
  constexpr int64_t kInputs = 37, kRows = 9;
  for (const int64_t outputs : {16, 50, 64, 65, 130, 200}) {
    std::vector<float> weight(outputs * kInputs), bias(outputs), x(kRows * kInputs);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = std::sin(0.7f * static_cast<float>(i));
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = std::cos(0.3f * static_cast<float>(i));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.9f * static_cast<float>(i));
    const int64_t columns = Padded(outputs);
    std::vector<float> transposed(kInputs * columns), padded_bias(columns), want(kRows * columns), got(kRows * columns);
    Transpose(weight.data(), outputs, kInputs, transposed.data(), columns);
    std::copy(bias.begin(), bias.end(), padded_bias.begin());
    Multiply({kRows, kInputs, columns, x.data(), kInputs, 1, transposed.data(), columns, padded_bias.data(), 0,
              want.data(), columns});
    PackedLayer(weight.data(), bias.data(), kInputs, outputs).Forward(x.data(), kInputs, kRows, got.data());
    EXPECT_EQ(got, want) << outputs << " outputs";
  }
}

}  // namespace
}  // namespace skein
