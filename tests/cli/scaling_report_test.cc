// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_report.h"

#include "bench/scaling_dashboard.h"
#include "gmock/gmock.h"
#include "tests/cli/scaling_fixture.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
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

TEST(ScalingReport, DrawsItsFindingsFromTheFigures) {
  const std::string report = ReportOf(SampleResults());
  EXPECT_THAT(report,
              HasSubstr("One runner with one environment makes 300 env-steps/s; the fastest configuration, 2x2, "
                        "makes 750: 2.50 times as many with 4 environments, on a machine with 2 cores."));
  EXPECT_THAT(report,
              HasSubstr("2x2 reaches 37.5 % of that; nearest to the limit of its own threads is 1x2 with 60.0 %"));
  EXPECT_THAT(report, HasSubstr("2 environments: 1x2 600, 2x1 480"));
  // A step takes 0.6 x 4 s / 1200 at 1x1 and 0.6 x 2 x 1.6 s / 1200 at 2x2, which is less: no contention.
  EXPECT_THAT(report, HasSubstr("At 2x2 runners spend 60.0 % of their time on physics at the speed of 1x1, 0.0 %"));
  // They wait 100 - 60 - 10 - 5 = 25 %; the learner takes 20 + 1 + 1.
  EXPECT_THAT(report,
              HasSubstr("they wait 25.0 %. Of that, 22.0 % is the learner, during whose update nobody collects, "
                        "and 3.0 % is everything else"));
  EXPECT_THAT(report, HasSubstr("more than 60 % efficiency and less than 70 % CPU: 480 env-steps/s"));
  EXPECT_THAT(report, HasSubstr("most of the share that they call serial is the lack of cores"));
  EXPECT_THAT(report, HasSubstr("skein train --env HalfCheetah-v5 --runners 2 --envs-per-runner 2 --envs 4 "
                                "--set rollout.steps_per_iteration=1200"));
}

TEST(ScalingReport, LabelsTheStudysFiguresAsAnotherMachines) {
  ScalingResults results = SampleResults();
  EXPECT_THAT(ReportOf(results),
              AllOf(HasSubstr("Its figures are from **another machine**"),
                    HasSubstr("| 2x2 | 4.11 | 2.85 | 71.2 | 3,992 | 20.7/29.2 | 1.600 | 2.50 | 62.5 |")));
  results.config["env"] = "CartPole-v1";
  EXPECT_THAT(ReportOf(results), Not(HasSubstr("another machine")));
}

TEST(ScalingReport, InOtherModesTheLearnerWorksBesideTheRunners) {
  ScalingResults results = SampleResults();
  results.config["run_config"] = "sync:\n  mode: overlapped\n";
  EXPECT_THAT(ReportOf(results), AllOf(HasSubstr("The learner is busy 22.0 % of the time, beside them."),
                                       Not(HasSubstr("during whose update"))));
}

TEST(ScalingReport, OfOneConfigurationHasNoLaws) {
  ScalingResults results = SampleResults();
  results.rows.resize(1);
  results.limits.clear();
  const std::string report = ReportOf(results);
  EXPECT_THAT(report, AllOf(Not(HasSubstr("Amdahl")), Not(HasSubstr("another machine")),
                            HasSubstr("| balanced | none | only a single environment was measured |")));
}

TEST(ScalingReport, TableIsShortEnoughForATerminal) {
  const ScalingResults results = SampleResults();
  const std::string table = FormatScalingTable(Analyze(results));
  EXPECT_THAT(table, AllOf(HasSubstr("2x2"), HasSubstr("62.5 %"), HasSubstr("fastest: 2x2 (most env-steps/s")));
}

TEST(ScalingDashboard, DataHaveAColumnForEachChart) {
  const std::string data = DashboardData(Analyze(SampleResults()));
  EXPECT_THAT(data, StartsWith("configuration\tenvironments\tseconds\t"));
  EXPECT_THAT(data, HasSubstr("\n2x1\t2\t2.5\t0\t1.6\t80\t480\t?\t?\t65\t65\t65\t?\t?\t2x1\t2x1\n"));
}

TEST(ScalingDashboard, PointsThatLieOnEachOtherShareALabel) {
  ScalingResults results = SampleResults();
  results.rows[2] = SampleMeasurement({1, 2}, {2.45, 2.45}, 0.8);  // As fast as 2x1, nearly.
  const std::string data = DashboardData(Analyze(results));
  EXPECT_THAT(data, HasSubstr("\t2x1, 1x2\t2x1, 1x2\n1x2\t"));
  EXPECT_THAT(data, HasSubstr("\t\" \"\t\" \"\n2x2\t"));
}

TEST(ScalingDashboard, ScriptHasSixCharts) {
  ScalingResults results = SampleResults();
  results.machine["cpu"] = "Odd \"name\" of_a processor";
  const std::string script = DashboardScript(results, Analyze(results));
  for (const char* title : {"Speed-up", "efficiency", "Time per iteration", "CPU", "GPU", "Env-steps/s"}) {
    EXPECT_THAT(script, HasSubstr(title));
  }
  EXPECT_THAT(script, HasSubstr("Amdahl, serial"));
  EXPECT_THAT(script, HasSubstr("HalfCheetah-v5 on Odd 'name' of\\\\_a processor, 2 cores"));
  EXPECT_THAT(script, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(script, Not(HasSubstr("@")));  // Nothing left to fill in.

  for (ScalingMeasurement& row : results.rows) row.usage[0].gpu = 0.5;
  EXPECT_THAT(DashboardScript(results, Analyze(results)), HasSubstr("gpu_average"));
}

}  // namespace
}  // namespace skein
