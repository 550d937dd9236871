// SPDX-License-Identifier: Apache-2.0
#include "base/config/run_state_name.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(RunStateName, DropsThePrefix) {
  EXPECT_EQ(RunStateName(v1::RUN_STATE_WAITING_FOR_DATA), "waiting_for_data");
  EXPECT_EQ(RunStateName(static_cast<v1::RunState>(99)), "99");
}

}  // namespace
}  // namespace skein
