// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_order.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

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

}  // namespace
}  // namespace skein
