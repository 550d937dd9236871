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
}

TEST(EditDistance, SwappedNeighboursAreOneEdit) {
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
  EXPECT_EQ(EditDistance("--evn", "--env"), 1);
  EXPECT_EQ(EditDistance("trian", "train"), 1);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);  // Not 2: nothing is put between letters that were swapped.
}

}  // namespace
}  // namespace skein
