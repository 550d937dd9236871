// SPDX-License-Identifier: Apache-2.0
#include "launch/visible_gpus.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(VisibleGpus, AreAllThatAreInstalledUnlessTheVariableIsSet) {
  EXPECT_EQ(CountVisibleGpus(std::nullopt, 4), 4u);
  EXPECT_EQ(CountVisibleGpus(std::nullopt, 0), 0u);
}

TEST(VisibleGpus, AreThoseThatTheVariableNames) {
  EXPECT_EQ(CountVisibleGpus("0", 4), 1u);
  EXPECT_EQ(CountVisibleGpus("2, 3", 4), 2u);
  EXPECT_EQ(CountVisibleGpus("GPU-8932f937,MIG-1c5f", 1), 2u);  // Parts of one GPU count each.
  EXPECT_EQ(CountVisibleGpus("0,1", 0), 2u);                    // The driver cannot be asked: believed.
}

TEST(VisibleGpus, EndAtTheFirstEntryThatIsNoGpu) {
  EXPECT_EQ(CountVisibleGpus("", 4), 0u);
  EXPECT_EQ(CountVisibleGpus("-1", 4), 0u);
  EXPECT_EQ(CountVisibleGpus("NoDevFiles", 4), 0u);
  EXPECT_EQ(CountVisibleGpus("0,-1,1", 4), 1u);
  EXPECT_EQ(CountVisibleGpus("1,4,2", 4), 1u);  // There is no number 4.
}

}  // namespace
}  // namespace skein
