// SPDX-License-Identifier: Apache-2.0
#include "learner/report/training_watch.h"

#include <cmath>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "learner/algorithm/ppo/ppo_rules.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kCriticUpdates = 50;  // Of the rule about explained variance.

// All that a watch says about these statistics, the same in each of `updates` iterations of a second.
std::vector<std::string> Watched(TrainingWatch watch, const UpdateStats& stats, size_t updates, double progress = 0.1) {
  std::vector<std::string> all;
  for (size_t i = 0; i < updates; ++i) {
    for (std::string& warning : watch.Observe({.stats = &stats, .progress = progress, .seconds = 1.0 * i})) {
      all.push_back(std::move(warning));
    }
  }
  return all;
}

// With PPO's rules.
TrainingWatch Choices(int64_t choices) { return TrainingWatch(PpoRules({.action_size = choices, .discrete = true})); }
TrainingWatch Reals(int64_t reals) { return TrainingWatch(PpoRules({.action_size = reals, .discrete = false})); }

// A rule of an algorithm that the watch has never heard of.
TEST(TrainingWatch, JudgesAnyStatisticByItsRule) {
  const auto advice = [](const WatchRule::Found& found) {
    return absl::StrFormat("%.1f after %d at %.2f", found.mean, found.updates, found.progress);
  };
  const auto watched = [&](WatchRule::Good good, double value, size_t updates, double progress = 0.1) {
    WatchRule rule{.stat = "q_gap", .good = good, .limit = 2, .patience = 30, .until_progress = 0.5, .advice = advice};
    return Watched(TrainingWatch({rule}), {{"q_gap", value}}, updates, progress);
  };
  using Good = WatchRule::Good;
  EXPECT_THAT(watched(Good::kAtMost, 3, 29), IsEmpty());
  EXPECT_THAT(watched(Good::kAtMost, 3, 100), ElementsAre("3.0 after 30 at 0.10"));
  EXPECT_THAT(watched(Good::kAtMost, 3, 100, 0.6), IsEmpty());
  EXPECT_THAT(watched(Good::kAtMost, 2, 100), IsEmpty());
  EXPECT_THAT(watched(Good::kAtLeast, 2, 100), IsEmpty());
  EXPECT_THAT(watched(Good::kAtLeast, 1, 100), ElementsAre("1.0 after 30 at 0.10"));
  EXPECT_THAT(watched(Good::kOnceAtLeast, 1, 100), ElementsAre("1.0 after 30 at 0.10"));
}

TEST(TrainingWatch, WithoutRulesJudgesNoStatistic) {
  EXPECT_THAT(Watched(TrainingWatch({}), {{"kl", 9}, {"clip_fraction", 1}, {"entropy", -99}}, 200), IsEmpty());
}

TEST(TrainingWatch, GoodStatisticsWarnOfNothing) {
  EXPECT_THAT(
      Watched(Reals(6), {{"kl", 0.02}, {"clip_fraction", 0.3}, {"explained_variance", 0.9}, {"entropy", 2}}, 200),
      IsEmpty());
}

TEST(TrainingWatch, AbsentStatisticsNeverWarn) {
  EXPECT_THAT(Watched(Choices(2), {}, 200), IsEmpty());
  EXPECT_THAT(Watched(Choices(2), {{"policy_loss", 1e9}, {"kl", NAN}}, 200), IsEmpty());
}

TEST(TrainingWatch, WarnsOnceOfALargeKlThatLasts) {
  EXPECT_THAT(Watched(Reals(1), {{"kl", 0.5}}, WatchRule::kWindow - 1), IsEmpty());
  EXPECT_THAT(Watched(Reals(1), {{"kl", 0.5}}, 500),
              ElementsAre(AllOf(HasSubstr("KL divergence"), HasSubstr("is 0.50 (mean of 20 updates)"),
                                HasSubstr("a lower learning rate"))));
}

TEST(TrainingWatch, OneLargeUpdateIsNoReason) {
  TrainingWatch watch = Reals(1);
  for (int i = 0; i < 100; ++i) {
    const UpdateStats stats = {{"kl", i == 50 ? 3.0 : 0.01}, {"clip_fraction", i == 50 ? 1.0 : 0.2}};
    EXPECT_THAT(watch.Observe({.stats = &stats}), IsEmpty()) << i;  // (3 + 19 x 0.01) / 20 = 0.16
  }
}

TEST(TrainingWatch, WarnsOfAClipFractionThatIsHighForLong) {
  EXPECT_THAT(Watched(Reals(1), {{"clip_fraction", 0.8}}, 100),
              ElementsAre(AllOf(HasSubstr("80 % of the samples are clipped"), HasSubstr("fewer epochs"))));
}

TEST(TrainingWatch, WarnsOfACriticThatNeverExplainedTheReturns) {
  EXPECT_THAT(Watched(Reals(1), {{"explained_variance", 0.02}}, kCriticUpdates - 1), IsEmpty());
  EXPECT_THAT(Watched(Reals(1), {{"explained_variance", 0.02}}, kCriticUpdates),
              ElementsAre(AllOf(HasSubstr("after 50 updates"), HasSubstr("explained variance is 0.02"))));
}

TEST(TrainingWatch, WarnsOnceWhereEveryEpisodeFails) {
  TrainingWatch watch({});
  const UpdateStats stats;
  const auto observe = [&](uint64_t completed, uint64_t failed) {
    return watch.Observe({.stats = &stats, .completed_episodes = completed, .failed_episodes = failed});
  };
  EXPECT_THAT(observe(0, 19), IsEmpty());
  EXPECT_THAT(observe(0, 0), IsEmpty());
  EXPECT_THAT(observe(0, 2), ElementsAre(HasSubstr("each of the 21 episodes that have ended failed")));
  EXPECT_THAT(observe(0, 100), IsEmpty());
}

TEST(TrainingWatch, AnEpisodeThatIsCompletedIsEnough) {
  TrainingWatch watch({});
  const UpdateStats stats;
  EXPECT_THAT(watch.Observe({.stats = &stats, .completed_episodes = 1, .failed_episodes = 500}), IsEmpty());
  EXPECT_THAT(watch.Observe({.stats = &stats, .failed_episodes = 500}), IsEmpty());
}

// Where every episode is perfect, returns do not vary and nothing is left to explain.
TEST(TrainingWatch, ACriticThatOnceExplainedTheReturnsIsGoodEnough) {
  TrainingWatch watch = Choices(2);
  for (int i = 0; i < 200; ++i) {
    const UpdateStats stats = {{"explained_variance", i < 30 ? 0.6 : -10.0}};
    EXPECT_THAT(watch.Observe({.stats = &stats}), IsEmpty()) << i;
  }
}

// A solved run that is resumed: its value function has explained nothing in this session.
TEST(TrainingWatch, WhereReturnsAreEqualThereIsNothingToExplain) {
  TrainingWatch watch = Choices(2);
  const UpdateStats stats = {{"explained_variance", -7.27}};
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(watch.Observe({.stats = &stats, .return_spread = i % 2 == 0 ? 0.0 : 0.019}), IsEmpty()) << i;
  }
  // Once they vary it is judged, over as many updates as any other.
  std::vector<std::string> warnings;
  for (size_t i = 1; i <= kCriticUpdates; ++i) {
    EXPECT_THAT(warnings, IsEmpty()) << i;
    warnings = watch.Observe({.stats = &stats, .return_spread = 0.02});
  }
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("after 50 updates")));
}

// CartPole's recipe with a longer target: the return rises from 20 to 440 in 50 updates, in each of which most episodes
// are still running.
TEST(TrainingWatch, WhereReturnsHaveRisenTheCriticIsGoodEnough) {
  const UpdateStats stats = {{"explained_variance", -0.65}};
  const auto watched = [&stats](double last_return) {
    TrainingWatch watch = Choices(2);
    std::vector<std::string> all;
    for (int i = 0; i < 60; ++i) {
      const double mean = i == 0 ? 20 : last_return;
      for (std::string& warning : watch.Observe({.stats = &stats, .return_mean = mean, .return_spread = 0.25})) {
        all.push_back(std::move(warning));
      }
    }
    return all;
  };
  EXPECT_THAT(watched(440), IsEmpty());
  EXPECT_THAT(watched(27), IsEmpty());                                   // 27 - 20 > 0.25 x 27
  EXPECT_THAT(watched(26), ElementsAre(HasSubstr("after 50 updates")));  // 26 - 20 < 0.25 x 26
  EXPECT_THAT(watched(9), ElementsAre(HasSubstr("after 50 updates")));
}

TEST(TrainingWatch, WarnsOfCollapsedEntropyInTheFirstHalf) {
  EXPECT_THAT(Watched(Choices(2), {{"entropy", 0.01}}, 100, 0.12),
              ElementsAre(AllOf(HasSubstr("stopped exploring after 12 %"), HasSubstr("0.010 of at most 0.69"))));
  EXPECT_THAT(Watched(Choices(2), {{"entropy", 0.01}}, 100, 0.8), IsEmpty());
  EXPECT_THAT(Watched(Choices(2), {{"entropy", 0.05}}, 100), IsEmpty());  // 0.05 x 0.69 = 0.035
}

TEST(TrainingWatch, EntropyOfRealsIsTheirStandardDeviation) {
  // Six actions with a standard deviation of 0.005: 6 (ln 0.005 + 1.4189) = -23.28; of 0.02: -14.96.
  EXPECT_THAT(Watched(Reals(6), {{"entropy", -23.28}}, 100), ElementsAre(HasSubstr("is about 0.005")));
  EXPECT_THAT(Watched(Reals(6), {{"entropy", -14.96}}, 100), IsEmpty());
}

// Iterations of `seconds` each, of which so many are waiting and updating.
std::vector<std::string> Timed(int iterations, double seconds, double waiting, double updating, int actors) {
  TrainingWatch watch = Reals(1);
  const UpdateStats stats;
  std::vector<std::string> all;
  for (int i = 1; i <= iterations; ++i) {
    for (std::string& warning : watch.Observe({.stats = &stats,
                                .seconds = i * seconds,
                                .waiting_seconds = i * waiting,
                                .update_seconds = i * updating,
                                .actors = actors})) {
      all.push_back(std::move(warning));
    }
  }
  return all;
}

TEST(TrainingWatch, WarnsOfALearnerThatWaitsForActors) {
  EXPECT_THAT(Timed(60, 1, 0.95, 0.05, 1), IsEmpty());  // 59 s between the first and the last.
  EXPECT_THAT(Timed(200, 1, 0.95, 0.05, 1),
              ElementsAre(AllOf(HasSubstr("waits for actors 95 % of the time"), HasSubstr("skein worker"))));
  EXPECT_THAT(Timed(200, 1, 0.8, 0.2, 1), IsEmpty());
  EXPECT_THAT(Timed(200, 1, 0.95, 0.05, 0), IsEmpty());  // On the device.
  EXPECT_THAT(Timed(5, 100, 95, 5, 1), IsEmpty());       // Four after the first are too few,
  EXPECT_THAT(Timed(6, 100, 95, 5, 1).size(), 1u);       // five are enough.
}

TEST(TrainingWatch, LooksAtTheLastMinuteNotAtTheWholeRun) {
  TrainingWatch watch = Reals(1);
  const UpdateStats stats;
  double waiting = 0;
  size_t warnings = 0;
  for (int i = 1; i <= 1200; ++i) {
    waiting += i < 1000 ? 0.1 : 0.99;  // The actors have left.
    warnings += watch.Observe({.stats = &stats, .seconds = 1.0 * i, .waiting_seconds = waiting, .actors = 1}).size();
  }
  EXPECT_EQ(warnings, 1u);
}

TEST(TrainingWatch, WarnsOfSeveralActorsThatWaitForTheLearner) {
  EXPECT_THAT(Timed(200, 1, 0, 0.97, 4),
              ElementsAre(AllOf(HasSubstr("4 actors wait for the learner"), HasSubstr("updates take 97 %"))));
  EXPECT_THAT(Timed(200, 1, 0, 0.97, 1), IsEmpty());  // There is none that could be left out.
  EXPECT_THAT(Timed(200, 1, 0.1, 0.9, 4), IsEmpty());
}

// Statistics of whole runs: of each recipe of docs/benchmarks/recipes.md, and of bad ones. To record one (TOTAL is its
// total_steps):
//   echo progress,kl,clip_fraction,explained_variance,entropy
//   jq -r '[.env_steps / TOTAL, .update.kl, .update.clip_fraction, .update.explained_variance, .update.entropy] | @csv'
//      runs/NAME/metrics.jsonl
// inverted_pendulum.csv and bad_cartpole_late.csv also have .episode_return_mean, as return_mean, the first also the
// most that the return_spread of returns from 1 to 1,000 with that mean can be: sqrt((1,000 - mean) (mean - 1)) / mean
// (Bhatia and Davis 2000).
std::vector<std::string> WatchedSeries(const std::string& name, TrainingWatch watch) {
  std::ifstream file("tests/learner/training_series/" + name + ".csv");
  std::string line;
  EXPECT_TRUE(std::getline(file, line)) << name;
  const std::vector<std::string> names = absl::StrSplit(line, ',');
  std::vector<std::string> all;
  size_t updates = 0;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    UpdateStats stats;
    TrainingWatch::Iteration iteration{.stats = &stats};
    for (size_t i = 0; i < cells.size(); ++i) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(cells[i], &value)) << line;
      if (names.at(i) == "progress") {
        iteration.progress = value;
      } else if (names[i] == "return_mean") {
        iteration.return_mean = value;
      } else if (names[i] == "return_spread") {
        iteration.return_spread = value;
      } else {
        stats.Add(names[i], value);
      }
    }
    for (std::string& warning : watch.Observe(iteration)) {
      all.push_back(std::move(warning));
    }
    ++updates;
  }
  EXPECT_GT(updates, 40u) << name;
  return all;
}

TEST(TrainingWatch, SaysNothingOfTheShippedRecipes) {
  EXPECT_THAT(WatchedSeries("ant", Reals(8)), IsEmpty());
  EXPECT_THAT(WatchedSeries("cartpole", Choices(2)), IsEmpty());
  EXPECT_THAT(WatchedSeries("half_cheetah", Reals(6)), IsEmpty());
  EXPECT_THAT(WatchedSeries("hopper", Reals(3)), IsEmpty());
  EXPECT_THAT(WatchedSeries("humanoid", Reals(17)), IsEmpty());
  EXPECT_THAT(WatchedSeries("humanoid_standup", Reals(17)), IsEmpty());
  EXPECT_THAT(WatchedSeries("inverted_double_pendulum", Reals(1)), IsEmpty());
  EXPECT_THAT(WatchedSeries("inverted_pendulum", Reals(1)), IsEmpty());
  EXPECT_THAT(WatchedSeries("latency", Reals(1)), IsEmpty());
  EXPECT_THAT(WatchedSeries("mountain_car_continuous", Reals(1)), IsEmpty());
  EXPECT_THAT(WatchedSeries("pendulum", Reals(1)), IsEmpty());
  EXPECT_THAT(WatchedSeries("pusher", Reals(7)), IsEmpty());
  EXPECT_THAT(WatchedSeries("quadruped_stand", Reals(8)), IsEmpty());
  EXPECT_THAT(WatchedSeries("reacher", Reals(2)), IsEmpty());
  EXPECT_THAT(WatchedSeries("repeat_previous", Choices(4)), IsEmpty());
  EXPECT_THAT(WatchedSeries("sticky_cartpole", Choices(2)), IsEmpty());
  EXPECT_THAT(WatchedSeries("swimmer", Reals(2)), IsEmpty());
  EXPECT_THAT(WatchedSeries("uav_cover", Choices(9)), IsEmpty());
  EXPECT_THAT(WatchedSeries("uav_navigate", Choices(9)), IsEmpty());
  EXPECT_THAT(WatchedSeries("walker2d", Reals(6)), IsEmpty());
}

TEST(TrainingWatch, SeesWhatWentWrongInBadRuns) {
  EXPECT_THAT(WatchedSeries("bad_cartpole_lr_0.1", Choices(2)),
              ElementsAre(HasSubstr("KL divergence"), HasSubstr("stopped exploring")));
  EXPECT_THAT(WatchedSeries("bad_cartpole_lr_1", Choices(2)),
              ElementsAre(HasSubstr("KL divergence"), HasSubstr("stopped exploring"), HasSubstr("explained variance")));
  // Learns, and forgets all of it before a third of the run: the mean of the entropy is that low after its half only.
  EXPECT_THAT(WatchedSeries("bad_cartpole_late", Choices(2)), ElementsAre(HasSubstr("stopped exploring")));
  // Actions too narrow to find the goal: no reward, so nothing that a critic could learn.
  EXPECT_THAT(WatchedSeries("bad_mountain_car_narrow", Reals(1)), ElementsAre(HasSubstr("explained variance")));
}

}  // namespace
}  // namespace skein
