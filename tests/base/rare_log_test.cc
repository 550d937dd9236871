// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/rare_log.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(RareLog, TellsOnceAPeriodAndHowManyItLeftOut) {
  RareLog log(absl::Seconds(10));
  EXPECT_EQ(log.Admit("a", absl::Seconds(100)), "a");
  EXPECT_EQ(log.Admit("b", absl::Seconds(101)), std::nullopt);
  EXPECT_EQ(log.Admit("c", absl::Seconds(109.9)), std::nullopt);
  EXPECT_EQ(log.Admit("d", absl::Seconds(110)), "d (and 2 times before)");
  EXPECT_EQ(log.Admit("e", absl::Seconds(120)), "e");
}

TEST(RareLog, OneLineStaysOne) {
  RareLog log;
  EXPECT_EQ(log.Admit("a\nb\x1b[2Jc", absl::Seconds(0)), "a b [2Jc");
}

}  // namespace
}  // namespace skein
