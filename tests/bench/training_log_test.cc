// SPDX-License-Identifier: Apache-2.0
#include "bench/training_log.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

std::string Line(int iteration, double seconds, double update, const std::string& more_stages = "") {
  return absl::StrCat(R"({"iteration":)", iteration, R"(,"env_steps":)", 100 * iteration, R"(,"samples":)",
                      10 * iteration, R"(,"seconds":)", seconds, R"(,"learner_stage_seconds":{"update":)", update,
                      more_stages, R"(},"actor_stage_seconds":{"env_step":)", iteration, R"(,"wait":0.5}})", "\n");
}

TEST(TrainingLog, CountsFromTheSecondIterationToTheLastButOne) {
  // Five lines: from the end of iteration 2 to the end of iteration 4.
  const auto figures =
      ReadTrainingLog(Line(1, 5, 1) + Line(2, 6, 2) + Line(3, 6.5, 2.25) + Line(4, 7, 2.5) + Line(5, 9, 4));
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->iterations, 2u);
  EXPECT_EQ(figures->env_steps, 200u);
  EXPECT_EQ(figures->samples, 70u);  // 30 + 40
  EXPECT_EQ(figures->seconds, 1);
  EXPECT_EQ(figures->learner_seconds["update"], 0.5);
  EXPECT_EQ(figures->actor_seconds["env_step"], 7);  // 3 + 4
  EXPECT_EQ(figures->actor_seconds["wait"], 1);
  EXPECT_EQ(figures->update_seconds_per_env_step(), 0.0025);  // 0.5 s / 200
}

TEST(TrainingLog, PrefersTheUpdatesProcessorTime) {
  const auto figures = ReadTrainingLog(Line(1, 1, 1) + Line(2, 2, 2, R"(,"update_cpu":1)") +
                                       Line(3, 3, 3, R"(,"update_cpu":1.5)") + Line(4, 4, 4, R"(,"update_cpu":2)"));
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->update_seconds_per_env_step(), 0.005);  // 0.5 s / 100
}

TEST(TrainingLog, RefusesWhatItCannotUse) {
  EXPECT_EQ(ReadTrainingLog("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTrainingLog(Line(1, 1, 1) + Line(2, 2, 2) + Line(3, 3, 3)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTrainingLog("{").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadTrainingLog("{}\n{}\n{}\n{}\n").status().code(), absl::StatusCode::kDataLoss);
}

// Ten seconds of two runners.
SteadyState TenSeconds(double update) {
  SteadyState figures;
  figures.seconds = 10;
  figures.actor_seconds = {{"env_step", 8}, {"inference", 2}, {"build", 2}, {"wait", 1}};
  figures.learner_seconds = {{"update", update}};
  return figures;
}

TEST(OverheadShare, OnPolicyIsWhatCollectingAndUpdatingLeave) {
  EXPECT_NEAR(OverheadShare(TenSeconds(3.5), 2, v1::SYNC_MODE_ON_POLICY), 0.05, 1e-12);  // 1 - (12 / 2 + 3.5) / 10
  EXPECT_EQ(OverheadShare(TenSeconds(9.5), 2, v1::SYNC_MODE_ON_POLICY), 0);              // Stages overlap: not below 0.
}

TEST(OverheadShare, OnADeviceWaitingForItIsCollecting) {
  EXPECT_NEAR(OverheadShare(TenSeconds(3.25), 2, v1::SYNC_MODE_ON_DEVICE), 0.025, 1e-12);  // 1 - (13 / 2 + 3.25) / 10
}

TEST(OverheadShare, OverlappedIsWhatRunnersWaitedUnlessTheUpdateIsLonger) {
  for (const v1::SyncMode mode : {v1::SYNC_MODE_OVERLAPPED, v1::SYNC_MODE_ASYNC}) {
    EXPECT_NEAR(OverheadShare(TenSeconds(3.5), 2, mode), 1.0 / 13, 1e-12);  // Of 12 + 1 s.
    EXPECT_NEAR(OverheadShare(TenSeconds(9.5), 2, mode), 0.05, 1e-12);      // 1 - 9.5 / 10
  }
  SteadyState nothing;
  nothing.seconds = 1;
  EXPECT_EQ(OverheadShare(nothing, 2, v1::SYNC_MODE_OVERLAPPED), 0);
}

}  // namespace
}  // namespace skein
