// SPDX-License-Identifier: Apache-2.0
#include "sweep/scheduler.h"

#include <algorithm>
#include <random>
#include <set>

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::SweepConfig Config(v1::SweepSchedule kind) {
  v1::SweepConfig config;
  config.set_seed(1);
  v1::SweepScheduler* const scheduler = config.mutable_scheduler();
  scheduler->set_kind(kind);
  scheduler->set_min_steps(100);
  scheduler->set_reduction(2);
  scheduler->set_interval_steps(100);
  scheduler->set_min_trials(3);
  scheduler->set_population(4);
  scheduler->set_quantile(0.25);
  return config;
}

Trial At(uint32_t number, uint32_t rung, std::map<uint32_t, double> results) {
  Trial trial;
  trial.number = number;
  trial.rung = rung;
  trial.results = std::move(results);
  return trial;
}

TEST(Halving, RungsGrowByTheReductionAndEndWithTheTarget) {
  EXPECT_THAT(HalvingRungs(100, 4, 1600), ElementsAre(100, 400, 1600));
  EXPECT_THAT(HalvingRungs(100, 4, 2000), ElementsAre(100, 400, 1600, 2000));
  EXPECT_THAT(HalvingRungs(2000, 4, 2000), ElementsAre(2000));
}

// 50,000 / 64 is 781.25, and 1,000,000 / 27 is 37,037.04.
TEST(Halving, RoundingMakesNoRungMore) {
  EXPECT_THAT(HalvingRungs(781, 4, 50000), ElementsAre(781, 3125, 12500, 50000));
  EXPECT_THAT(HalvingRungs(37037, 3, 1000000), ElementsAre(37037, 111111, 333333, 1000000));
  EXPECT_THAT(HalvingRungs(46875, 4, 3000000), ElementsAre(46875, 187500, 750000, 3000000));
  EXPECT_THAT(HalvingRungs(1, 2, 3), ElementsAre(1, 2, 3));
  v1::SweepConfig config = Config(v1::SWEEP_SCHEDULE_ASHA);
  config.mutable_scheduler()->set_min_steps(0);
  config.mutable_scheduler()->set_reduction(4);
  EXPECT_THAT(MakeScheduler(config, 50000)->rungs(0), ElementsAre(781, 3125, 12500, 50000));
  // Brackets begin with 64, 16, 4 and 1 times the least.
  config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_HYPERBAND);
  EXPECT_THAT(MakeScheduler(config, 50000)->rungs(1), ElementsAre(3125, 12500, 50000));
}

// Rungs 100, 200, 400.
TEST(Asha, PromotesTheBestShareOfWhatHasReachedTheRung) {
  const auto asha = MakeScheduler(Config(v1::SWEEP_SCHEDULE_ASHA), 400);
  ASSERT_THAT(asha->rungs(0), ElementsAre(100, 200, 400));
  // One of one: floor(1 / 2) = 0. Trial 1 is on its way and does not count.
  std::vector<Trial> trials = {At(0, 0, {{0, 5}}), At(1, 0, {})};
  EXPECT_THAT(asha->Judge(trials, true).promote, IsEmpty());
  trials[1].results[0] = 7;
  EXPECT_THAT(asha->Judge(trials, true).promote, ElementsAre(1));
  // Once promoted it is not promoted again; the rung's share is used up.
  trials[1].rung = 1;
  EXPECT_THAT(asha->Judge(trials, true).promote, IsEmpty());
  EXPECT_TRUE(asha->Judge(trials, true).wants_new);
  // Four at the rung: the best two, 9 and 7, of which 7 is promoted already.
  trials.push_back(At(2, 0, {{0, 6}}));
  trials.push_back(At(3, 0, {{0, 9}}));
  EXPECT_THAT(asha->Judge(trials, true).promote, ElementsAre(3));
  // The highest rung first.
  trials[1].results[1] = 1;
  trials[3].rung = 1;
  trials[3].results[1] = 2;
  trials.push_back(At(4, 0, {{0, 20}}));
  trials.push_back(At(5, 0, {{0, 10}}));
  EXPECT_THAT(asha->Judge(trials, true).promote, ElementsAre(3, 4, 5));
}

TEST(Asha, NeverPromotesWhatHasFailedOrWasStopped) {
  const auto asha = MakeScheduler(Config(v1::SWEEP_SCHEDULE_ASHA), 400);
  std::vector<Trial> trials = {At(0, 0, {{0, 5}}), At(1, 0, {{0, 9}})};
  trials[1].state = TrialState::kFailed;
  EXPECT_THAT(asha->Judge(trials, true).promote, IsEmpty());
}

TEST(Asha, StopsWhatWaitsInVainAtTheEndOnly) {
  const auto asha = MakeScheduler(Config(v1::SWEEP_SCHEDULE_ASHA), 400);
  std::vector<Trial> trials = {At(0, 0, {{0, 5}}), At(1, 1, {{0, 7}}), At(2, 0, {{0, 3}})};
  EXPECT_THAT(asha->Judge(trials, true).stop, IsEmpty());
  EXPECT_THAT(asha->Judge(trials, false).stop, IsEmpty());  // Trial 1 is on its way.
  trials[1].state = TrialState::kFailed;
  EXPECT_THAT(asha->Judge(trials, false).stop, ElementsAre(0, 2));
}

TEST(Asha, TheOrderOfTrialsInTheTableDoesNotMatterToWhoIsBest) {
  const auto asha = MakeScheduler(Config(v1::SWEEP_SCHEDULE_ASHA), 400);
  std::mt19937 random(1);
  std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int round = 0; round < 20; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    std::vector<Trial> trials;
    for (uint32_t i = 0; i < 8; ++i) trials.push_back(At(i, 0, {{0, values[i]}}));
    std::set<double> promoted;
    for (uint32_t number : asha->Judge(trials, true).promote) promoted.insert(values[number]);
    EXPECT_THAT(promoted, ElementsAre(5, 6, 7, 8));
  }
}

// Total 400, least 100, reduction 2: rungs 100, 200, 400; brackets s = 2, 1, 0 with ceil(3 / (s + 1) 2^s) = 4, 3, 3.
TEST(Hyperband, HasThePapersBrackets) {
  const auto hyperband = MakeScheduler(Config(v1::SWEEP_SCHEDULE_HYPERBAND), 400);
  EXPECT_EQ(hyperband->default_trials(), 10u);
  EXPECT_THAT(hyperband->rungs(0), ElementsAre(100, 200, 400));
  EXPECT_THAT(hyperband->rungs(1), ElementsAre(200, 400));
  EXPECT_THAT(hyperband->rungs(2), ElementsAre(400));
  std::vector<Trial> trials;
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < 11; ++i) {
    groups.push_back(hyperband->Judge(trials, true).group);
    trials.push_back(At(i, 0, {}));
    trials.back().group = groups.back();
  }
  EXPECT_THAT(groups, ElementsAre(0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3));
}

TEST(Hyperband, FinishesARungBeforeAnyOfItGoesOn) {
  const auto hyperband = MakeScheduler(Config(v1::SWEEP_SCHEDULE_HYPERBAND), 400);
  std::vector<Trial> trials = {At(0, 0, {{0, 1}}), At(1, 0, {{0, 4}}), At(2, 0, {{0, 3}}), At(3, 0, {})};
  EXPECT_THAT(hyperband->Judge(trials, true).promote, IsEmpty());
  EXPECT_THAT(hyperband->Judge(trials, true).stop, IsEmpty());
  trials[3].results[0] = 2;
  const auto verdict = hyperband->Judge(trials, true);
  EXPECT_THAT(verdict.promote, ElementsAre(1, 2));  // floor(4 / 2).
  EXPECT_THAT(verdict.stop, ElementsAre(3, 0));
  // Carried out in part: the rest of it comes again.
  trials[1].rung = 1;
  trials[3].state = TrialState::kPruned;
  EXPECT_THAT(hyperband->Judge(trials, true).promote, ElementsAre(2));
  EXPECT_THAT(hyperband->Judge(trials, true).stop, ElementsAre(0));
}

TEST(Hyperband, CountsAFailureAsTheWorst) {
  const auto hyperband = MakeScheduler(Config(v1::SWEEP_SCHEDULE_HYPERBAND), 400);
  std::vector<Trial> trials = {At(0, 0, {{0, 1}}), At(1, 0, {{0, 4}}), At(2, 0, {{0, 3}}), At(3, 0, {})};
  trials[3].state = TrialState::kFailed;
  EXPECT_THAT(hyperband->Judge(trials, true).promote, ElementsAre(1, 2));
}

TEST(Median, StopsWhatIsWorseThanTheMedianOfMeans) {
  const auto median = MakeScheduler(Config(v1::SWEEP_SCHEDULE_MEDIAN), 300);
  ASSERT_THAT(median->rungs(0), ElementsAre(100, 200, 300));
  EXPECT_FALSE(median->pauses());
  // Means up to the second rung: (1 + 3) / 2 = 2, 5, 8; the median is 5.
  std::vector<Trial> trials = {At(0, 2, {{0, 1}, {1, 3}, {2, 9}}), At(1, 2, {{0, 4}, {1, 6}, {2, 9}}),
                               At(2, 2, {{0, 7}, {1, 9}, {2, 9}})};
  for (Trial& one : trials) one.state = TrialState::kComplete;
  trials.push_back(At(3, 2, {{0, 4.5}, {1, 1}}));  // Its best, 4.5, is below 5.
  trials.push_back(At(4, 2, {{0, 5.5}, {1, 1}}));  // Its best is above.
  trials.push_back(At(5, 2, {}));
  EXPECT_THAT(median->Judge(trials, true).stop, ElementsAre(3));
  trials[0].state = TrialState::kRunning;  // Two are complete, three are wanted.
  EXPECT_THAT(median->Judge(trials, true).stop, IsEmpty());
}

TEST(Population, ReplacesTheWorstOnceAllAreThere) {
  const auto population = MakeScheduler(Config(v1::SWEEP_SCHEDULE_POPULATION), 300);
  std::vector<Trial> trials;
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(population->Judge(trials, true).wants_new);
    trials.push_back(At(i, 0, {}));
    trials.back().group = population->Judge({trials.begin(), trials.end() - 1}, true).group;
  }
  for (uint32_t i : {2u, 0u, 1u}) trials[i].results[0] = i;  // 0, 1, 2 and, in a moment, 3.
  EXPECT_THAT(population->Judge(trials, true).promote, IsEmpty());
  EXPECT_THAT(population->Judge(trials, true).copies, IsEmpty());
  trials[3].results[0] = 3;
  auto verdict = population->Judge(trials, true);
  EXPECT_FALSE(verdict.wants_new);
  ASSERT_EQ(verdict.copies.size(), 1u);  // A quarter of four.
  EXPECT_EQ(verdict.copies[0].loser, 0u);
  EXPECT_EQ(verdict.copies[0].donor, 3u);
  EXPECT_EQ(verdict.copies[0].rung, 0u);
  EXPECT_THAT(verdict.promote, ElementsAre(3, 2, 1));
  // Once it is made it is not made again, also after some have gone on.
  trials.push_back(At(4, 1, {}));
  trials[4].group = 0;
  trials[4].origin = Trial::Origin{3, 0};
  trials[0].state = TrialState::kPruned;
  trials[3].rung = 1;
  verdict = population->Judge(trials, true);
  EXPECT_THAT(verdict.copies, IsEmpty());
  EXPECT_THAT(verdict.promote, ElementsAre(2, 1));
  // The next generation has the copy in the loser's place.
  trials[1].rung = trials[2].rung = 1;
  for (uint32_t i : {1u, 2u, 3u}) trials[i].results[1] = 10 + i;
  EXPECT_THAT(population->Judge(trials, true).copies, IsEmpty());
  trials[4].results[1] = 20;
  verdict = population->Judge(trials, true);
  ASSERT_EQ(verdict.copies.size(), 1u);
  EXPECT_EQ(verdict.copies[0].loser, 1u);
  EXPECT_EQ(verdict.copies[0].donor, 4u);
}

TEST(Population, ReplacesAMemberThatHasFailed) {
  const auto population = MakeScheduler(Config(v1::SWEEP_SCHEDULE_POPULATION), 300);
  std::vector<Trial> trials;
  for (uint32_t i = 0; i < 4; ++i) {
    trials.push_back(At(i, 0, {{0, static_cast<double>(i)}}));
    trials.back().group = i;
  }
  trials[2].results.clear();
  trials[2].state = TrialState::kFailed;
  const auto verdict = population->Judge(trials, true);
  ASSERT_EQ(verdict.copies.size(), 1u);
  EXPECT_EQ(verdict.copies[0].loser, 2u);
}

}  // namespace
}  // namespace skein
