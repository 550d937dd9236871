// SPDX-License-Identifier: Apache-2.0
#include "cli/vain_failures.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(VainFailures, AreThoseBetweenWhichNoStepWasTaken) {
  VainFailures failures(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(failures.Take(kExitInternal, 0));
  EXPECT_TRUE(failures.Take(kExitInternal, 512));  // It has taken some.
  EXPECT_TRUE(failures.Take(kExitInternal, 512));
  EXPECT_TRUE(failures.Take(kExitInternal, 512));
  EXPECT_FALSE(failures.Take(kExitInternal, 512));
}

TEST(VainFailures, BeginAnewAfterAnotherEnd) {
  VainFailures failures(1);
  EXPECT_TRUE(failures.Take(kExitInternal, 7));
  EXPECT_TRUE(failures.Take(kExitUnavailable, 7));
  EXPECT_TRUE(failures.Take(kExitInternal, 7));
  EXPECT_FALSE(failures.Take(kExitInternal, 7));
}

TEST(VainFailures, AreHangsToo) {
  VainFailures failures(1);
  EXPECT_TRUE(failures.Take(kExitTryAgain, 0));
  EXPECT_FALSE(failures.Take(kExitTryAgain, 0));
}

}  // namespace
}  // namespace skein
