// SPDX-License-Identifier: Apache-2.0
#include "base/config/resume_mode.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(ResumeMode, ReadsBackEachName) {
  for (ResumeMode mode : {ResumeMode::kAuto, ResumeMode::kMust, ResumeMode::kNever}) {
    EXPECT_EQ(ParseResumeMode(ResumeModeName(mode)).value(), mode);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseResumeMode("perhaps").status()));
}

}  // namespace
}  // namespace skein
