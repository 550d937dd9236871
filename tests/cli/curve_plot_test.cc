// SPDX-License-Identifier: Apache-2.0
#include "cli/curve_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(PlotCurves, DrawsEachCurveWithItsLetter) {
  const std::string plot =
      PlotCurves({{"up", {{0, 0}, {50, 5}, {100, 10}}}, {"flat", {{0, 10}, {100, 10}}}}, "steps", 41, 5);
  EXPECT_EQ(plot,
            "       10 |b                            b\n"
            "          |\n"
            "        5 |               a\n"
            "          |\n"
            "        0 |a\n"
            "          +------------------------------\n"
            "           0                    100 steps\n"
            "a  up  (last 10)\n"
            "b  flat  (last 10)\n");
}

TEST(PlotCurves, ShowsTheMeanOfWhatSharesAColumn) {
  const std::string plot = PlotCurves({{"noise", {{0, 0}, {0, 2}, {100, 3}}}}, "steps", 40, 4);
  EXPECT_THAT(plot, testing::StartsWith("        3 |"));
  EXPECT_THAT(plot, testing::HasSubstr("        1 |a\n"));
}

TEST(PlotCurves, TakesASinglePoint) {
  EXPECT_THAT(PlotCurves({{"one", {{7, 4}}}}, "steps", 40, 4), testing::HasSubstr("a"));
}

}  // namespace
}  // namespace skein
