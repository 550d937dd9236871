// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_grid.h"

#include <set>

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(const std::vector<ScalingPoint>& grid) {
  std::vector<std::string> names;
  for (const ScalingPoint& point : grid) names.push_back(point.name());
  return names;
}

TEST(ScalingGrid, ReadsNumbersBetweenCommas) {
  EXPECT_THAT(ParseCounts("1,2,16", "--runners").value(), ElementsAre(1, 2, 16));
  EXPECT_THAT(ParseCounts("256", "--runners").value(), ElementsAre(256));
}

TEST(ScalingGrid, NamesTheFlagAndWhatIsWrongWithIt) {
  for (const char* text : {"", "0", "1,,2", "1,x", "-1", "1.5", "4097", "1,"}) {
    const auto refused = ParseCounts(text, "--envs");
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << text;
    EXPECT_THAT(refused.status().message(), HasSubstr("--envs: got '")) << text;
  }
  EXPECT_THAT(ParseCounts("2,4,2", "--envs").status().message(), HasSubstr("2 stands there twice"));
}

TEST(ScalingGrid, IsTheStudysByDefault) {
  EXPECT_THAT(Names(StudyGrid()), ElementsAre("1x1", "2x1", "4x1", "8x1", "1x2", "1x4", "1x8", "2x2", "4x2", "8x2"));
}

TEST(ScalingGrid, CrossesAllWithTheBaselineFirst) {
  EXPECT_THAT(Names(CrossGrid({1, 2}, {1, 4})), ElementsAre("1x1", "2x1", "1x4", "2x4"));
  EXPECT_THAT(Names(CrossGrid({4}, {2})), ElementsAre("1x1", "4x2"));
}

TEST(ScalingGrid, RoundsStepsToTheEnvironments) {
  EXPECT_EQ(FittingSteps(16384, 16), 16384u);
  EXPECT_EQ(FittingSteps(16384, 3), 16383u);  // 5461 each; 5461.33 before.
  EXPECT_EQ(FittingSteps(100, 60), 120u);     // 1.67 each.
  EXPECT_EQ(FittingSteps(10, 256), 256u);     // At least one.
}

}  // namespace
}  // namespace skein
