// SPDX-License-Identifier: Apache-2.0
#include "learner/report/metrics.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

class LearnerMetricsTest : public testing::Test {
 protected:
  double Value(const std::string& name, const std::map<std::string, std::string>& labels = {}) {
    return MetricValue(registry_, name, labels);
  }
  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
};

TEST_F(LearnerMetricsTest, AddsUpStages) {
  metrics_.AddStage(LearnerMetrics::Stage::kUpdate, absl::Milliseconds(1500));
  metrics_.AddStage(LearnerMetrics::Stage::kUpdate, absl::Milliseconds(500));
  EXPECT_EQ(Value("skein_learner_stage_seconds_total", {{"stage", "update"}}), 2);
  EXPECT_EQ(metrics_.StageSeconds().at("update"), 2);
  EXPECT_EQ(metrics_.StageSeconds().size(), LearnerMetrics::kStageNames.size());
}

TEST_F(LearnerMetricsTest, CountersFollowTheAccountAndNeverFall) {
  v1::StepAccount account;
  account.set_collected(100);
  account.set_trained(60);
  account.set_lost(10);
  account.set_pending(30);
  metrics_.SetAccount(account, 0);
  account.set_pending(20);
  account.set_trained(50);
  metrics_.SetAccount(account, 3);
  EXPECT_EQ(Value("skein_learner_env_steps_total", {{"fate", "collected"}}), 100);
  EXPECT_EQ(Value("skein_learner_env_steps_total", {{"fate", "trained"}}), 60);
  EXPECT_EQ(Value("skein_learner_env_steps_total", {{"fate", "lost"}}), 10);
  EXPECT_EQ(Value("skein_learner_pending_env_steps"), 20);
  EXPECT_EQ(Value("skein_learner_env_steps_imbalance"), 3);
}

TEST_F(LearnerMetricsTest, CountsFragmentsByResult) {
  metrics_.CountFragment(v1::RECEIPT_RESULT_ACCEPTED, 10, 7);
  metrics_.CountFragment(v1::RECEIPT_RESULT_STALE, 5, 0);
  metrics_.CountFragment(v1::RECEIPT_RESULT_STALE, 5, 0);
  EXPECT_EQ(Value("skein_learner_batches_total", {{"result", "accepted"}}), 1);
  EXPECT_EQ(Value("skein_learner_batches_total", {{"result", "stale"}}), 2);
  EXPECT_EQ(Value("skein_learner_received_bytes_total"), 20);
  EXPECT_EQ(Value("skein_learner_received_uncompressed_bytes_total"), 27);
}

TEST_F(LearnerMetricsTest, CountsIterationsEpisodesAndCheckpoints) {
  metrics_.CountIteration(1, 125, {{"epochs", 4}, {"gradient_steps", 20}, {"kl", 0.1}});
  metrics_.CountIteration(0, 500, {{"gradient_steps", 20}});  // Once over the data.
  metrics_.CountEpisode(300);
  metrics_.CountFailedEpisodes(2);
  metrics_.CountCheckpoint(true, absl::Seconds(2), absl::FromUnixSeconds(1000));
  metrics_.CountCheckpoint(false, absl::Seconds(2), absl::FromUnixSeconds(2000));
  metrics_.CountPolicySent(77, 3);
  metrics_.SetActors(3);
  EXPECT_EQ(Value("skein_learner_iterations_total"), 2);
  EXPECT_EQ(Value("skein_learner_policy_lag_versions"), 2);
  EXPECT_EQ(Value("skein_learner_samples_total"), 1000);
  EXPECT_EQ(Value("skein_learner_gradient_steps_total"), 40);
  EXPECT_EQ(Value("skein_learner_episodes_total"), 1);
  EXPECT_EQ(Value("skein_learner_episode_steps_total"), 300);
  EXPECT_EQ(Value("skein_learner_failed_episodes_total"), 2);
  EXPECT_EQ(Value("skein_learner_checkpoints_total"), 1);
  EXPECT_EQ(Value("skein_learner_checkpoint_failures_total"), 1);
  EXPECT_EQ(Value("skein_learner_checkpoint_seconds"), 1);
  EXPECT_EQ(Value("skein_learner_checkpoint_timestamp_seconds"), 1000);
  EXPECT_EQ(Value("skein_learner_policy_sent_bytes_total"), 77);
  EXPECT_EQ(Value("skein_learner_policy_sent_uncompressed_bytes_total"), 80);
  EXPECT_EQ(Value("skein_learner_actors"), 3);
}

TEST_F(LearnerMetricsTest, CountsWhatIsKeptFromTraining) {
  metrics_.CountMalformedMessage();
  metrics_.CountQuarantinedFragment();
  metrics_.CountIteration(0, 10, {{"skipped_steps", 0}});
  metrics_.CountIteration(0, 10, {{"skipped_steps", 3}});
  EXPECT_EQ(Value("skein_learner_malformed_messages_total"), 1);
  EXPECT_EQ(Value("skein_learner_quarantined_total", {{"what", "batch"}}), 1);
  EXPECT_EQ(Value("skein_learner_quarantined_total", {{"what", "gradient_step"}}), 3);
}

TEST_F(LearnerMetricsTest, TheQueueIsFullAtItsRoom) {
  metrics_.SetQueue(3, 12);
  EXPECT_EQ(Value("skein_learner_queued_batches"), 3);
  EXPECT_EQ(Value("skein_learner_queue_fill_ratio"), 0.25);
  metrics_.SetQueue(13, 12);
  EXPECT_EQ(Value("skein_learner_queue_fill_ratio"), 1);
  metrics_.SetQueue(0, 0);
  EXPECT_TRUE(std::isnan(Value("skein_learner_queue_fill_ratio")));
}

TEST_F(LearnerMetricsTest, FollowsSumsOverRanksWaitsAndTheEnvironmentsOwnMetrics) {
  metrics_.SetReduction(4, 1000, absl::Seconds(2), absl::Milliseconds(500));
  metrics_.SetReduction(6, 1500, absl::Seconds(3), absl::Milliseconds(750));
  EXPECT_EQ(Value("skein_learner_all_reduces_total"), 6);
  EXPECT_EQ(Value("skein_learner_all_reduce_sent_bytes_total"), 1500);
  EXPECT_EQ(Value("skein_learner_all_reduce_seconds_total"), 3);
  EXPECT_EQ(Value("skein_learner_all_reduce_exposed_seconds_total"), 0.75);
  metrics_.SetStarving(absl::Seconds(7));
  EXPECT_EQ(Value("skein_learner_starving_seconds"), 7);
  metrics_.ObserveHeartbeat(absl::Milliseconds(1));
  EXPECT_EQ(Value("skein_learner_heartbeat_seconds"), 1);
  metrics_.SetEpisodeMetric("coverage", 0.5);
  metrics_.SetEpisodeMetric("coverage", 0.75);
  EXPECT_EQ(Value("skein_learner_episode_metric", {{"metric", "coverage"}}), 0.75);
}

// There, and NaN: not a made-up 0.
TEST_F(LearnerMetricsTest, WhatIsNotKnownYetIsNaN) {
  const std::string text = prometheus::TextSerializer().Serialize(registry_.Collect());
  for (const char* name : {"checkpoint_timestamp_seconds", "ranks", "policy_version", "target_env_steps",
                           "episode_return_mean", "episode_length_mean", "queue_fill_ratio"}) {
    EXPECT_THAT(text, testing::HasSubstr(absl::StrCat("\nskein_learner_", name, " Nan\n")));
  }
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("digest")));
}

TEST_F(LearnerMetricsTest, OneRankIsAGroupAndSeveralFormOne) {
  metrics_.SetWorldRanks(4);
  EXPECT_EQ(Value("skein_learner_world_ranks"), 4);
  EXPECT_TRUE(std::isnan(Value("skein_learner_ranks")));
  metrics_.SetRanks(3);
  EXPECT_EQ(Value("skein_learner_ranks"), 3);
  metrics_.SetWorldRanks(1);
  EXPECT_EQ(Value("skein_learner_ranks"), 1);
}

TEST_F(LearnerMetricsTest, ShowsProgressAndNoMeanBeforeTheFirstEpisode) {
  v1::RunProgress progress;
  progress.set_policy_version(4);
  progress.set_target_env_steps(1000);
  progress.set_env_steps_per_second_60s(25);
  progress.set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  (*progress.mutable_losses())["kl"] = 0.5;
  (*progress.mutable_episode_metrics())["coverage"] = 0.25;
  (*progress.mutable_callback_metrics())["to_go"] = 3;
  metrics_.SetProgress(progress);
  EXPECT_EQ(Value("skein_learner_policy_version"), 4);
  EXPECT_EQ(Value("skein_learner_target_env_steps"), 1000);
  EXPECT_EQ(Value("skein_learner_phase"), 0);
  EXPECT_EQ(Value("skein_learner_env_steps_per_second", {{"window", "60s"}}), 25);
  EXPECT_EQ(Value("skein_learner_update_figure", {{"figure", "kl"}}), 0.5);
  EXPECT_EQ(Value("skein_learner_episode_metric", {{"metric", "coverage"}}), 0.25);
  EXPECT_EQ(Value("skein_learner_callback_metric", {{"metric", "to_go"}}), 3);
  EXPECT_TRUE(std::isnan(Value("skein_learner_episode_return_mean")));
  EXPECT_TRUE(std::isnan(Value("skein_learner_episode_length_mean")));
  progress.set_mean_episode_return(12);
  progress.set_mean_episode_length(34);
  progress.set_phase(2);
  metrics_.SetProgress(progress);
  EXPECT_EQ(Value("skein_learner_episode_return_mean"), 12);
  EXPECT_EQ(Value("skein_learner_phase"), 2);
  EXPECT_EQ(Value("skein_learner_episode_length_mean"), 34);
}

}  // namespace
}  // namespace skein
