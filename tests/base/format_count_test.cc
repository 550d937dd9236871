// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/format_count.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace skein
