// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace skein {
namespace {

// The rows of minibatch i by their number among all ranks' rows.
std::vector<int64_t> GlobalRows(const MinibatchOrder& order, const RowShare& share, size_t i) {
  std::vector<int64_t> rows;
  for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) {
    const int64_t row = order.rows[k].item<int64_t>();
    rows.push_back(row / share.columns * share.total + share.offset + row % share.columns);
  }
  return rows;
}

TEST(MinibatchOrder, RanksShareEachMinibatchOfASingleRank) {
  // 5 steps of 7 columns: minibatches of 10, 10 and 15.
  const RowShare whole{5, 7, 0, 7}, left{5, 4, 0, 7}, right{5, 3, 4, 7};
  const MinibatchOrder all = ShuffleMinibatches(whole, 10, 1, 2, 3), of_left = ShuffleMinibatches(left, 10, 1, 2, 3),
                       of_right = ShuffleMinibatches(right, 10, 1, 2, 3);
  EXPECT_EQ(all.size, (std::vector<int64_t>{10, 10, 15}));
  EXPECT_EQ(all.begin, (std::vector<int64_t>{0, 10, 20, 35}));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(of_left.size[i], all.size[i]);
    std::vector<int64_t> want = GlobalRows(all, whole, i), got = GlobalRows(of_left, left, i);
    for (const int64_t row : GlobalRows(of_right, right, i)) got.push_back(row);
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, want);
  }
  EXPECT_EQ(of_left.rows.numel(), 20);
  EXPECT_EQ(of_right.begin.back(), 15);
}

TEST(MinibatchOrder, ARankWithoutColumnsHasEveryMinibatchEmpty) {
  const MinibatchOrder order = ShuffleMinibatches({5, 0, 3, 7}, 10, 1, 2, 3);
  EXPECT_EQ(order.size, (std::vector<int64_t>{10, 10, 15}));
  EXPECT_EQ(order.begin, (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(order.rows.numel(), 0);
}

TEST(ShuffleActive, RanksShareTheActiveRowsOfEachMinibatch) {
  std::vector<torch::Device> devices = {torch::kCPU};
  if (torch::cuda::is_available()) devices.emplace_back(torch::kCUDA);
  const RowShare whole{50, 7, 0, 7}, left{50, 4, 0, 7}, right{50, 3, 4, 7}, none{50, 0, 7, 7};
  torch::manual_seed(4);
  const torch::Tensor active = torch::rand({50, 7}) < 0.8;
  for (const torch::Device device : devices) {
    const auto shuffle = [&](const RowShare& share, uint64_t iteration) {
      const torch::Tensor own = active.narrow(1, share.offset, share.columns).contiguous().view({-1}).to(device);
      auto order = ShuffleActive(share, own, 100, 1, iteration, 3, nullptr);
      EXPECT_TRUE(order.ok()) << order.status();
      EXPECT_EQ(order->rows.device().type(), device.type());
      order->rows = order->rows.cpu();
      return *std::move(order);
    };
    const MinibatchOrder all = shuffle(whole, 2), of_left = shuffle(left, 2), of_right = shuffle(right, 2);
    ASSERT_EQ(all.minibatches(), 3u);  // Of 100, 100 and 150 rows, less those that are not active.
    std::vector<int64_t> seen;
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<int64_t> want = GlobalRows(all, whole, i);
      EXPECT_EQ(all.size[i], static_cast<int64_t>(want.size()));
      EXPECT_EQ(of_left.size[i] + of_right.size[i], all.size[i]);
      std::vector<int64_t> got = GlobalRows(of_left, left, i);
      for (const int64_t row : GlobalRows(of_right, right, i)) got.push_back(row);
      EXPECT_THAT(got, testing::UnorderedElementsAreArray(want));
      seen.insert(seen.end(), want.begin(), want.end());
    }
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 350; ++row) {
      if (active.view({-1})[row].item<bool>()) rows.push_back(row);
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(rows));
    EXPECT_NE(seen, rows);
    EXPECT_TRUE(torch::equal(shuffle(whole, 2).rows, all.rows));
    EXPECT_FALSE(torch::equal(shuffle(whole, 5).rows, all.rows));
    EXPECT_EQ(shuffle(none, 2).begin, (std::vector<int64_t>{0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace skein
