// SPDX-License-Identifier: Apache-2.0
#include "base/config/edit_distance.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("lr", "lr"), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);  // k -> s, e -> i, + g.
  EXPECT_EQ(EditDistance("ab", "acb"), 1);
}

TEST(EditDistance, ASwapOfNeighboursIsOneEdit) {
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
  EXPECT_EQ(EditDistance("trian", "train"), 1);
  EXPECT_EQ(EditDistance("stauts", "status"), 1);
  EXPECT_EQ(EditDistance("evn", "env"), 1);
  EXPECT_EQ(EditDistance("abc", "cba"), 2);  // a -> c, c -> a: they are no neighbours.
  EXPECT_EQ(EditDistance("ca", "abc"), 3);   // A swap is not edited again: - c, + b, + c.
}

}  // namespace
}  // namespace skein
