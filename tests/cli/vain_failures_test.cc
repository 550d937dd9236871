// SPDX-License-Identifier: Apache-2.0
#include "cli/vain_failures.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(VainFailures, AreThoseBetweenWhichNoStepWasTaken) {
  VainFailures failures(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(failures.Take(0));
  EXPECT_TRUE(failures.Take(512));  // It has taken some.
  EXPECT_TRUE(failures.Take(512));
  EXPECT_TRUE(failures.Take(512));
  EXPECT_FALSE(failures.Take(512));
}

TEST(VainFailures, BeginAnewAfterAnotherEnd) {
  VainFailures failures(1);
  EXPECT_TRUE(failures.Take(7));
  failures.Clear();
  EXPECT_TRUE(failures.Take(7));
  EXPECT_FALSE(failures.Take(7));
}

}  // namespace
}  // namespace skein
