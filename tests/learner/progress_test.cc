// SPDX-License-Identifier: Apache-2.0
#include "learner/report/progress.h"

#include <cmath>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(RateWindow, KnowsNoRateFromLessThanTwoPoints) {
  RateWindow window;
  EXPECT_EQ(window.Rate(absl::Seconds(5), absl::Seconds(10)), 0);
  window.Add(absl::Seconds(5), 100);
  EXPECT_EQ(window.Rate(absl::Seconds(6), absl::Seconds(10)), 0);
}

TEST(RateWindow, UsesWhatThereIsIfThatIsShorterThanTheWindow) {
  RateWindow window;
  window.Add(absl::Seconds(10), 0);
  window.Add(absl::Seconds(12), 100);
  EXPECT_EQ(window.Rate(absl::Seconds(12), absl::Seconds(60)), 50);  // 100 in 2 s.
  EXPECT_EQ(window.Rate(absl::Seconds(14), absl::Seconds(60)), 25);  // Nothing since: 100 in 4 s.
  EXPECT_EQ(window.Rate(absl::Seconds(10), absl::Seconds(60)), 0);   // No time has passed.
}

TEST(RateWindow, CountsFromTheNewestPointThatIsOldEnough) {
  RateWindow window;
  for (int second = 0; second <= 100; ++second) {
    // 10 a second for 90 s, then 100 a second.
    window.Add(absl::Seconds(second), second <= 90 ? 10 * second : 900 + 100 * (second - 90));
  }
  EXPECT_EQ(window.Rate(absl::Seconds(100), absl::Seconds(10)), 100);
  EXPECT_EQ(window.Rate(absl::Seconds(100), absl::Seconds(20)), 55);   // (100 + 1000) / 20
  EXPECT_EQ(window.Rate(absl::Seconds(100), absl::Seconds(300)), 19);  // 1900 / 100
  EXPECT_EQ(window.Rate(absl::Seconds(200), absl::Seconds(10)), 0);    // All of it is long ago.
}

TEST(RateWindow, ForgetsWhatIsOlderThanTheLongestWindow) {
  RateWindow window;
  window.Add(absl::Seconds(0), 0);
  for (int second = 1000; second <= 1400; second += 100) window.Add(absl::Seconds(second), second);
  // The points that are left: 1000 (one before the last 300 s), 1100, ... 1400.
  EXPECT_EQ(window.Rate(absl::Seconds(1400), absl::Seconds(10000)), 1);
}

TEST(ProgressTracker, BeginsWhereTheRunWas) {
  ProgressTracker tracker(1000, 400, 4, 7);
  const v1::RunProgress progress = tracker.Snapshot(absl::Seconds(1));
  EXPECT_EQ(progress.state(), v1::RUN_STATE_WAITING_FOR_DATA);
  EXPECT_EQ(progress.target_env_steps(), 1000u);
  EXPECT_EQ(progress.env_steps(), 400u);
  EXPECT_EQ(progress.start_env_steps(), 400u);
  EXPECT_EQ(tracker.env_steps(), 400u);
  EXPECT_EQ(progress.iteration(), 4u);
  EXPECT_EQ(progress.policy_version(), 5u);
  EXPECT_EQ(progress.episodes(), 7u);
  EXPECT_TRUE(std::isnan(progress.mean_episode_return()));
  EXPECT_EQ(progress.eta_seconds(), -1);
}

TEST(ProgressTracker, TellsHowMuchReturnsVary) {
  ProgressTracker tracker(1000, 0, 0, 0);
  EXPECT_TRUE(std::isnan(tracker.ReturnSpread()));
  std::vector<double> returns = {-10, -20};  // Mean -15, standard deviation 5.
  std::vector<int64_t> lengths = {1, 1};
  ProgressTracker::Iteration iteration;
  iteration.episode_returns = &returns;
  iteration.episode_lengths = &lengths;
  const std::vector<float> none;
  iteration.episode_metrics = &none;
  tracker.CountIteration(absl::Seconds(1), iteration);
  EXPECT_DOUBLE_EQ(tracker.ReturnSpread(), 1.0 / 3);
  returns.assign(100, 500);
  lengths.assign(100, 500);
  tracker.CountIteration(absl::Seconds(2), iteration);
  EXPECT_EQ(tracker.ReturnSpread(), 0);
  returns.assign(100, 0);
  tracker.CountIteration(absl::Seconds(3), iteration);
  EXPECT_TRUE(std::isnan(tracker.ReturnSpread()));
}

TEST(ProgressTracker, CountsIterationsAndEstimatesTheEnd) {
  ProgressTracker tracker(1000, 0, 0, 0);
  const std::vector<double> returns = {10, 20};
  const std::vector<int64_t> lengths = {100, 300};
  ProgressTracker::Iteration iteration;
  iteration.env_steps = 100;
  iteration.policy_lag = 1;
  iteration.policy_version = 2;
  iteration.stats = {{"kl", 0.5}, {"lr", 0.1}};
  iteration.episode_returns = &returns;
  iteration.episode_lengths = &lengths;
  tracker.CountIteration(absl::Seconds(10), iteration);
  iteration.policy_version = 3;
  iteration.policy_lag = 0;
  iteration.stats = {{"kl", 0.25}};
  tracker.CountIteration(absl::Seconds(12), iteration);

  const v1::RunProgress progress = tracker.Snapshot(absl::Seconds(12));
  EXPECT_EQ(progress.state(), v1::RUN_STATE_TRAINING);
  EXPECT_EQ(progress.env_steps(), 200u);
  EXPECT_EQ(progress.iteration(), 2u);
  EXPECT_EQ(progress.policy_version(), 3u);
  EXPECT_EQ(progress.mean_policy_lag(), 0);
  EXPECT_EQ(progress.episodes(), 4u);
  EXPECT_EQ(progress.mean_episode_return(), 15);
  EXPECT_EQ(progress.mean_episode_length(), 200);
  EXPECT_EQ(progress.env_steps_per_second_10s(), 50);
  EXPECT_EQ(progress.env_steps_per_second_300s(), 50);
  EXPECT_EQ(progress.eta_seconds(), 16);  // 800 left at 50 a second.
  ASSERT_EQ(progress.losses().size(), 1u);
  EXPECT_EQ(progress.losses().at("kl"), 0.25);
}

TEST(ProgressTracker, AveragesTheLastHundredEpisodes) {
  ProgressTracker tracker(1, 0, 0, 0);
  std::vector<double> returns;
  std::vector<int64_t> lengths;
  for (int i = 0; i < 150; ++i) {
    returns.push_back(i);
    lengths.push_back(2 * i);
  }
  ProgressTracker::Iteration iteration;
  iteration.episode_returns = &returns;
  iteration.episode_lengths = &lengths;
  tracker.CountIteration(absl::Seconds(1), iteration);
  EXPECT_EQ(tracker.Snapshot(absl::Seconds(1)).mean_episode_return(), 99.5);  // Of 50 to 149.
  EXPECT_EQ(tracker.Snapshot(absl::Seconds(1)).mean_episode_length(), 199);
  EXPECT_EQ(tracker.Snapshot(absl::Seconds(1)).episodes(), 150u);
}

TEST(ProgressTracker, GoesOnWithTheEpisodesOfACheckpoint) {
  ProgressTracker whole(1000, 0, 0, 0, {"success"}), begun(1000, 0, 0, 0, {"success"});
  std::vector<double> returns;
  std::vector<int64_t> lengths;
  std::vector<float> metrics;
  for (int i = 0; i < 70; ++i) {
    returns.push_back(i / 3.0);
    lengths.push_back(i + 1);
    metrics.push_back(static_cast<float>(i % 2));
  }
  ProgressTracker::Iteration iteration;
  iteration.episode_returns = &returns;
  iteration.episode_lengths = &lengths;
  iteration.episode_metrics = &metrics;
  whole.CountIteration(absl::Seconds(1), iteration);
  begun.CountIteration(absl::Seconds(1), iteration);
  const EpisodeWindow window = begun.LastEpisodes();
  EXPECT_EQ(window.returns.size(), 70u);
  ProgressTracker resumed(1000, 0, 1, 70, {"success"}, window);
  EXPECT_EQ(resumed.Snapshot(absl::Seconds(2)).mean_episode_return(), 11.5);  // 69 / 2 / 3
  whole.CountIteration(absl::Seconds(2), iteration);
  resumed.CountIteration(absl::Seconds(2), iteration);
  const v1::RunProgress want = whole.Snapshot(absl::Seconds(3)), got = resumed.Snapshot(absl::Seconds(3));
  EXPECT_EQ(got.episodes(), want.episodes());
  EXPECT_EQ(got.mean_episode_return(), want.mean_episode_return());
  EXPECT_EQ(got.mean_episode_length(), want.mean_episode_length());
  EXPECT_EQ(got.episode_metrics().at("success"), want.episode_metrics().at("success"));
  EXPECT_EQ(resumed.LastEpisodes().returns, whole.LastEpisodes().returns);
}

TEST(ProgressTracker, HasNothingLeftAtTheTarget) {
  ProgressTracker tracker(100, 150, 1, 0);
  EXPECT_EQ(tracker.Snapshot(absl::Seconds(1)).eta_seconds(), 0);
}

TEST(ProgressTracker, KeepsTheFirstErrorAndTheNewestCheckpoint) {
  ProgressTracker tracker(1, 0, 0, 0);
  tracker.SetError("disk full");
  tracker.SetError("later trouble");
  tracker.SetCheckpoint("a", "1");
  tracker.SetCheckpoint("b", "2");
  tracker.SetState(v1::RUN_STATE_FAILED);
  tracker.SetPolicyVersion(9);
  const v1::RunProgress progress = tracker.Snapshot(absl::Seconds(1));
  EXPECT_EQ(progress.last_error(), "disk full");
  EXPECT_EQ(progress.checkpoint(), "b");
  EXPECT_EQ(progress.checkpoint_digest(), "2");
  EXPECT_EQ(progress.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(progress.policy_version(), 9u);
}

TEST(ProgressTracker, KeepsWhatACallbackLoggedLast) {
  ProgressTracker progress(1000, 0, 0, 0);
  progress.SetCallbackMetrics({{"a", 1}, {"b", 2}});
  progress.SetCallbackMetrics({{"a", 3}});
  const auto kept = progress.Snapshot(absl::ZeroDuration()).callback_metrics();
  EXPECT_EQ(kept.at("a"), 3);
  EXPECT_EQ(kept.at("b"), 2);
}

TEST(ProgressTracker, AveragesAnEnvironmentsOwnMetricsOverTheSameEpisodes) {
  ProgressTracker tracker(1000, 0, 0, 0, {"success_rate", "coverage"});
  EXPECT_TRUE(tracker.Snapshot(absl::Seconds(1)).episode_metrics().empty());
  const std::vector<double> returns(60, 1.0);
  const std::vector<int64_t> lengths(60, 10);
  std::vector<float> first, second;
  for (int i = 0; i < 60; ++i) {
    first.insert(first.end(), {0.0f, 1.0f});
    second.insert(second.end(), {1.0f, 0.5f});
  }
  ProgressTracker::Iteration iteration;
  iteration.episode_returns = &returns;
  iteration.episode_lengths = &lengths;
  iteration.episode_metrics = &first;
  tracker.CountIteration(absl::Seconds(1), iteration);
  iteration.episode_metrics = &second;
  tracker.CountIteration(absl::Seconds(2), iteration);
  // The last 100 episodes: 40 of the first iteration, 60 of the second.
  const v1::RunProgress progress = tracker.Snapshot(absl::Seconds(3));
  EXPECT_NEAR(progress.episode_metrics().at("success_rate"), 0.6, 1e-9);
  EXPECT_NEAR(progress.episode_metrics().at("coverage"), 0.7, 1e-9);  // (40 + 30) / 100
}

}  // namespace
}  // namespace skein
