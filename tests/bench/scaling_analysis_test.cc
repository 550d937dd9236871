// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_analysis.h"

#include "gmock/gmock.h"
#include "tests/bench/scaling_fixture.h"

namespace skein {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

ScalingRow Row(ScalingPoint point, double rate, double efficiency, double cpu) {
  ScalingRow row;
  row.point = point;
  row.env_steps_per_second = rate;
  row.efficiency = efficiency;
  row.cpu.average = cpu;
  return row;
}

TEST(ScalingAnalysis, ComparesEachConfigurationWithOneEnvironment) {
  const ScalingAnalysis analysis = Analyze(SampleResults());
  ASSERT_EQ(analysis.rows.size(), 4u);
  const ScalingRow& one = analysis.rows[0];
  EXPECT_DOUBLE_EQ(one.seconds_mean, 4);
  EXPECT_THAT(one.seconds_deviation, DoubleNear(0.141421356, 1e-6));  // sqrt((0.1^2 + 0.1^2) / 1).
  EXPECT_DOUBLE_EQ(one.env_steps_per_second, 300);                    // 1200 / 4.
  EXPECT_DOUBLE_EQ(one.efficiency, 1);
  EXPECT_DOUBLE_EQ(*one.limit_ratio, 0.3);  // 300 / 1000.
  const ScalingRow& four = analysis.rows[3];
  EXPECT_THAT(four.speed_up, DoubleNear(2.5, 1e-9));        // 4 / 1.6.
  EXPECT_THAT(four.efficiency, DoubleNear(0.625, 1e-9));    // 2.5 / 4.
  EXPECT_THAT(*four.limit_ratio, DoubleNear(0.375, 1e-9));  // 750 / 2000.
  EXPECT_FALSE(analysis.rows[1].limit);
}

TEST(ScalingAnalysis, SpeedUpGoesByStepsWhereIterationsDiffer) {
  ScalingResults results = SampleResults();
  // Twice the environments, twice the steps, in 5 s instead of 4: 480 instead of 300 steps a second.
  results.rows[1] = SampleMeasurement({2, 1}, {5.0, 5.0}, 0.5);
  results.rows[1].times.env_steps = 4800;
  EXPECT_THAT(Analyze(results).rows[1].speed_up, DoubleNear(1.6, 1e-9));
}

TEST(ScalingAnalysis, RecommendsByTheStudysRule) {
  ScalingAnalysis analysis;
  analysis.rows = {Row({1, 1}, 1403, 1.0, 0.08),   Row({2, 1}, 2246, 0.801, 0.13), Row({4, 1}, 3816, 0.679, 0.21),
                   Row({8, 1}, 6464, 0.576, 0.34), Row({1, 2}, 2394, 0.853, 0.14), Row({8, 2}, 7354, 0.327, 0.33)};
  Recommend(&analysis);
  EXPECT_EQ(analysis.fastest.row, 5u);         // 8x2.
  EXPECT_EQ(analysis.balanced.row, 2u);        // 4x1: the fastest above 60 %.
  EXPECT_EQ(analysis.most_efficient.row, 4u);  // 1x2; 1x1 does not count.
  EXPECT_THAT(analysis.balanced.why, HasSubstr("more than 60 % efficiency and less than 70 % CPU: 3,816 env-steps/s"));
}

TEST(ScalingAnalysis, ABusyCpuIsNotBalanced) {
  ScalingAnalysis analysis;
  analysis.rows = {Row({1, 1}, 100, 1, 0.5), Row({2, 1}, 180, 0.9, 0.7), Row({1, 2}, 170, 0.85, 0.69)};
  Recommend(&analysis);
  EXPECT_EQ(analysis.balanced.row, 2u);  // 2x1 has 70 %, which is not below 70 %.
}

TEST(ScalingAnalysis, SaysWhyNothingIsBalanced) {
  ScalingAnalysis analysis;
  analysis.rows = {Row({1, 1}, 100, 1, 0.5), Row({2, 1}, 180, 0.9, 0.95), Row({4, 1}, 190, 0.475, 0.75)};
  Recommend(&analysis);
  EXPECT_FALSE(analysis.balanced.row);
  // 2x1 misses by 25 % of CPU, 4x1 by 12.5 % of efficiency and 5 % of CPU.
  EXPECT_THAT(analysis.balanced.why,
              HasSubstr("nearest is 4x1 with 190 env-steps/s at 47.5 % efficiency and 75.0 % CPU"));

  analysis.rows.resize(1);
  Recommend(&analysis);
  EXPECT_EQ(analysis.fastest.row, 0u);
  EXPECT_FALSE(analysis.most_efficient.row);
  EXPECT_THAT(analysis.balanced.why, HasSubstr("only a single environment"));
}

TEST(ScalingAnalysis, WritesAllThatPeopleSee) {
  const ScalingResults results = SampleResults();
  const auto json = ToJson(results, Analyze(results));
  EXPECT_EQ(json["machine"]["cores"], 2);
  EXPECT_EQ(json["rows"][3]["configuration"], "2x2");
  EXPECT_TRUE(json["rows"][1]["limit_ratio"].is_null());
  EXPECT_TRUE(json["rows"][1]["gpu"].is_null());
  EXPECT_EQ(json["summary"]["gpu_reason"], results.gpu_reason);
  EXPECT_EQ(json["summary"]["fastest"]["configuration"], "2x2");
  EXPECT_TRUE(json["rows"][0]["stage_shares"]["learner"]["update"].is_number());
  EXPECT_EQ(json["limits"]["2x1"]["how"], "skein bench env was stopped");
}

TEST(ScalingResult, IsReadBackAsItWasWritten) {
  ScalingMeasurement row = SampleMeasurement({4, 2}, {1.25, 1.5}, 0.75);
  row.actors = 2;
  row.usage[0].gpu = 0.5;
  const auto back = MeasurementFromJson(nlohmann::ordered_json::parse(ToJson(row).dump()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(row));
  EXPECT_EQ(back->point, row.point);
  EXPECT_EQ(back->usage[0].gpu, 0.5);
}

TEST(ScalingResult, OfAnotherShapeIsDataLoss) {
  auto json = ToJson(SampleMeasurement({1, 1}, {1}, 0.5));
  EXPECT_TRUE(absl::IsDataLoss(MeasurementFromJson({}).status()));
  json["iteration_seconds"] = nlohmann::ordered_json::array();
  EXPECT_TRUE(absl::IsDataLoss(MeasurementFromJson(json).status()));
  json["iteration_seconds"] = "long";
  EXPECT_TRUE(absl::IsDataLoss(MeasurementFromJson(json).status()));
}

}  // namespace
}  // namespace skein
