// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/work_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein {
namespace {

TEST(WorkProgress, SaysFromTimeToTimeHowLongEachWorkTakes) {
  std::vector<std::string> lines;
  WorkProgress progress([&](const std::string& line) { lines.push_back(line); }, absl::Seconds(100));
  progress.Set("reading", 0, absl::Seconds(100));
  progress.Set("reading", 0.1, absl::Seconds(104));
  EXPECT_TRUE(lines.empty()) << "too early";
  progress.Set("reading", 0.2, absl::Seconds(105));
  progress.Set("reading", 0.3, absl::Seconds(106));
  EXPECT_EQ(lines, std::vector<std::string>{"reading: 20%, ETA 20s"});  // A fifth took 5 s.
  progress.Set("judging", 0, absl::Seconds(110));
  progress.Set("judging", 0.5, absl::Seconds(120));
  EXPECT_EQ(lines, (std::vector<std::string>{"reading: 20%, ETA 20s", "judging: 0%, ETA -", "judging: 50%, ETA 10s"}));
}

}  // namespace
}  // namespace skein
