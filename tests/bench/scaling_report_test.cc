// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_report.h"

#include "gmock/gmock.h"
#include "tests/bench/scaling_fixture.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string ReportOf(const ScalingResults& results) { return FormatScalingReport(results, Analyze(results)); }

TEST(ScalingReport, HasMachineSetupAndEachConfiguration) {
  const std::string report = ReportOf(SampleResults());
  EXPECT_THAT(report, StartsWith("# How training of HalfCheetah-v5 scales on this machine\n"));
  EXPECT_THAT(report, HasSubstr("A processor, 2 cores, 4 GiB, no GPU; An OS; MuJoCo 2.3.7; GCC 12"));
  EXPECT_THAT(report, HasSubstr("with seed 20227128: 2 iterations of about 1,200 env steps"));
  EXPECT_THAT(report, HasSubstr("| 1x1 | 1 | 4.000 +- 0.141 | 1.00 | 100.0 | 300 | 30.0 | 50 / 50 / 50 | 50 50 | - |"));
  EXPECT_THAT(report, HasSubstr("| 2x2 | 4 | 1.600 +- 0.000 | 2.50 | 62.5 | 750 | 37.5 | 90 / 90 / 90 | 90 90 | - |"));
  EXPECT_THAT(report, HasSubstr("No GPU figures: no NVIDIA driver"));
}

TEST(ScalingReport, SaysWhereTheTimeGoesAndWhatToTake) {
  const std::string report = ReportOf(SampleResults());
  // A step takes 0.6 x 4 s / 1200 at 1x1 and 0.6 x 2 x 1.6 s / 1200 at 2x2, which is less: no contention. Runners wait
  // 100 - 60 - 10 - 5 = 25 %; the learner takes 20 + 1 + 1, so 3 % are for something else.
  EXPECT_THAT(report, HasSubstr("| 2x2 | 60.0 | 0.0 | 10.0 | 5.0 | 25.0 | 3.0 | 20.0 | 1.0 |"));
  EXPECT_THAT(report, HasSubstr("more than 60 % efficiency and less than 70 % CPU: 480 env-steps/s"));
  EXPECT_THAT(report, HasSubstr("skein train --env HalfCheetah-v5 --recipe study --runners 2 --set rollout.num_envs=4 "
                                "--set rollout.steps_per_iteration=1200"));
}

TEST(ScalingReport, OfOneConfigurationRecommendsNoBalance) {
  ScalingResults results = SampleResults();
  results.rows.resize(1);
  results.limits.clear();
  EXPECT_THAT(ReportOf(results), HasSubstr("| balanced | none | only a single environment was measured |"));
}

TEST(ScalingReport, TableIsShortEnoughForATerminal) {
  const ScalingResults results = SampleResults();
  const std::string table = FormatScalingTable(Analyze(results));
  EXPECT_THAT(table, AllOf(HasSubstr("2x2"), HasSubstr("62.5 %"), HasSubstr("fastest: 2x2 (most env-steps/s")));
}

}  // namespace
}  // namespace skein
