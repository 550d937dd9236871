// SPDX-License-Identifier: Apache-2.0
#include "base/process/restart_budget.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(RestartBudget, AllowsTheLimitWithinAnyWindow) {
  RestartBudget budget(2, absl::Seconds(60));
  EXPECT_TRUE(budget.Take(absl::Seconds(0)));
  EXPECT_TRUE(budget.Take(absl::Seconds(30)));
  EXPECT_FALSE(budget.Take(absl::Seconds(59)));
  EXPECT_TRUE(budget.Take(absl::Seconds(60)));   // The first is a window ago.
  EXPECT_FALSE(budget.Take(absl::Seconds(89)));  // 30 and 60 still count.
  EXPECT_TRUE(budget.Take(absl::Seconds(90)));
}

}  // namespace
}  // namespace skein
