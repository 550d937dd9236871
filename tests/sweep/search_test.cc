// SPDX-License-Identifier: Apache-2.0
#include "sweep/search.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/config/config_reflection.h"
#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "sweep/sweep_report.h"
#include "tests/sweep/scripted_sweep.h"

namespace skein {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(SearchTest, RunsEachTrialOnceWhateverTheOrder) {
  Open(v1::SWEEP_SCHEDULE_NONE);
  RunToEnd(1);
  EXPECT_EQ(trials().size(), 8u);
  EXPECT_EQ(launcher_.starts, 8);
  for (const Trial& one : trials()) {
    EXPECT_EQ(one.state, TrialState::kComplete);
    EXPECT_EQ(one.core_seconds, 10);
  }
  // The largest x has the largest metric.
  const uint32_t best = *BestTrial(search_->study(), *scheduler_);
  for (const Trial& one : trials()) EXPECT_LE(*one.point[0], *trials()[best].point[0]);
}

TEST_F(SearchTest, LosesNoTrialAndRunsNoneTwiceOverCrashes) {
  Open(v1::SWEEP_SCHEDULE_NONE);
  RunToEnd(2, true);
  EXPECT_EQ(trials().size(), 8u);
  std::set<double> points;
  for (const Trial& one : trials()) {
    EXPECT_EQ(one.state, TrialState::kComplete);
    points.insert(*one.point[0]);
  }
  EXPECT_EQ(points.size(), 8u);
  // The same points as without crashes: they are drawn by number.
  const Point first = *DrawPoint(file_.space, 1, 0, [](const Point&) { return true; });
  EXPECT_EQ(trials()[0].point, first);
}

TEST_F(SearchTest, HyperbandComesToTheSameWhateverTheOrderAndTheCrashes) {
  options_.max_trials = 10;
  std::set<double> rung1, rung2;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    unlink((folder_.path() + "/journal.log").c_str());
    launcher_ = FakeLauncher(3);
    Open(v1::SWEEP_SCHEDULE_HYPERBAND);
    RunToEnd(seed, seed > 3);
    EXPECT_EQ(trials().size(), 10u);
    if (seed == 1) {
      rung1 = PointsAt(1);
      rung2 = PointsAt(2);
    }
    EXPECT_EQ(PointsAt(1), rung1) << seed;
    EXPECT_EQ(PointsAt(2), rung2) << seed;
    // Bracket 0: 4 -> 2 -> 1; bracket 1: 3 -> 1; the rest is at its only rung.
    EXPECT_EQ(rung1.size(), 3u);
    EXPECT_EQ(rung2.size(), 1u);
  }
}

TEST_F(SearchTest, AshaPromotesAtLeastTheBestShareAndStopsTheRest) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    unlink((folder_.path() + "/journal.log").c_str());
    launcher_ = FakeLauncher(3);
    Open(v1::SWEEP_SCHEDULE_ASHA);
    RunToEnd(seed, seed > 3);
    ASSERT_EQ(trials().size(), 8u);
    std::vector<double> points;
    for (const Trial& one : trials()) {
      EXPECT_TRUE(one.state == TrialState::kComplete || one.state == TrialState::kPruned);
      points.push_back(*one.point[0]);
    }
    std::sort(points.rbegin(), points.rend());
    // The best four of eight are promoted, in whatever order they came; early arrivals may be, too.
    for (size_t i = 0; i < 4; ++i) EXPECT_THAT(PointsAt(1), Contains(points[i])) << seed;
    EXPECT_LE(PointsAt(1).size(), 7u);
    EXPECT_THAT(PointsAt(2), Contains(points[0])) << seed;
  }
}

TEST_F(SearchTest, PopulationCopiesBeforeTheDonorGoesOn) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    unlink((folder_.path() + "/journal.log").c_str());
    launcher_ = FakeLauncher(3);
    options_.max_trials = 4;
    options_.seeds_by_group = true;
    Open(v1::SWEEP_SCHEDULE_POPULATION);
    RunToEnd(seed, seed > 2);
    // One copy at the only inner rung, 200 of 400 steps.
    EXPECT_EQ(trials().size(), 5u);
    ASSERT_EQ(launcher_.copies.size(), 1u);
    EXPECT_THAT(launcher_.copies[0], HasSubstr("->4@200"));
    int complete = 0;
    for (const Trial& one : trials()) complete += one.state == TrialState::kComplete;
    EXPECT_EQ(complete, 4);
    EXPECT_EQ(Ancestors(search_->study(), 4).size(), 1u);
    // Members have seeds of their own, which a copy keeps on.
    for (const Trial& one : trials()) {
      EXPECT_EQ(options_.SeedOf(one, 0), one.group);
      EXPECT_EQ(launcher_.SeedOf({false, one.number, 0}), one.group);
    }
  }
}

// Its members with their values, results, and where they come from.
TEST_F(SearchTest, PopulationComesToTheSameWhateverTheOrderAndTheCrashes) {
  options_.max_trials = 4;
  options_.seeds_by_group = true;
  std::vector<std::string> first;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    unlink(journal_.c_str());
    launcher_ = FakeLauncher(3);
    // Rungs at 100, 200, 300 and 400; at each of the first three, two of the four continue copies.
    Open(v1::SWEEP_SCHEDULE_POPULATION, 100, 0.5);
    RunToEnd(seed, seed > 4);
    std::vector<std::string> members;
    for (const Trial& one : trials()) {
      members.push_back(absl::StrCat(one.number, " of member ", one.group, " at ", *one.point[0], ", state ",
                                     static_cast<int>(one.state)));
      if (one.origin) absl::StrAppend(&members.back(), ", from ", one.origin->trial, " at rung ", one.origin->rung);
      for (const auto& [rung, result] : one.results) absl::StrAppend(&members.back(), ", ", rung, ": ", result);
    }
    EXPECT_EQ(members.size(), 4u + 3 * 2);
    if (seed == 1) first = members;
    EXPECT_EQ(members, first) << seed;
  }
}

TEST_F(SearchTest, JudgesByTheMeanOverSeeds) {
  options_.max_trials = 1;
  options_.seeds = 3;
  options_.first_seed = 10;
  Open(v1::SWEEP_SCHEDULE_NONE);
  RunToEnd(1);
  EXPECT_EQ(launcher_.starts, 3);
  const double x = *trials()[0].point[0];
  // x (1 + 400 / 1000) plus the mean of the seeds 10, 11, 12.
  EXPECT_DOUBLE_EQ(trials()[0].results.at(0), x * 1.4 + 11);
  EXPECT_THAT(trials()[0].values, ElementsAre(x * 1.4 + 10, x * 1.4 + 11, x * 1.4 + 12));
}

TEST_F(SearchTest, MinimizesAndKeepsTheMetricAsItIs) {
  file_.config.set_goal(v1::SWEEP_GOAL_MINIMIZE);
  options_.seeds = 2;
  options_.first_seed = 10;
  Open(v1::SWEEP_SCHEDULE_ASHA);
  RunToEnd(1);
  ASSERT_EQ(trials().size(), 8u);
  double least = 2;
  for (const Trial& one : trials()) least = std::min(least, *one.point[0]);
  const auto best = BestTrial(search_->study(), *scheduler_);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(*trials()[*best].point[0], least);
  // x (1 + 400 / 1000) plus the mean of the seeds 10 and 11, in the file and, after reading it back, in the report.
  ASSERT_TRUE(Restart());
  EXPECT_DOUBLE_EQ(search_->study().Signed(trials()[*best].results.at(2)), least * 1.4 + 10.5);
  const std::string csv = ToCsv(file_.space, search_->study(), *scheduler_, 2);
  EXPECT_THAT(csv, HasSubstr(config_reflection::NumberText(trials()[*best].results.at(2) * -1)));
  std::vector<double> reported;
  std::ifstream journal(folder_.path() + "/journal.log");
  for (std::string line; std::getline(journal, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["op_code"] == 7 && record["step"] == 400) reported.push_back(record["intermediate_value"]);
  }
  EXPECT_THAT(reported, Contains(testing::DoubleEq(least * 1.4 + 10.5)));
}

TEST_F(SearchTest, MarksWhatFailsThreeTimesAndGoesOn) {
  options_.max_trials = 2;
  Open(v1::SWEEP_SCHEDULE_NONE);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Step();
    launcher_.End(0, JobEnd::How::kFailed);
    Step();
    now_ += absl::Minutes(1);  // Beyond the delay.
  }
  Step();
  EXPECT_EQ(trials()[0].state, TrialState::kFailed);
  EXPECT_EQ(trials()[0].why, "it fell over");
  EXPECT_EQ(trials()[0].failures, 3u);
  RunToEnd(1);
  EXPECT_EQ(trials()[1].state, TrialState::kComplete);
}

TEST_F(SearchTest, AFullDiskEndsTheSweepAndFailsNoTrial) {
  options_.max_trials = 2;
  Open(v1::SWEEP_SCHEDULE_NONE);
  for (int attempt = 0; attempt < 4; ++attempt) {
    Step();
    launcher_.End(0, JobEnd::How::kDiskFull);
    EXPECT_TRUE(absl::IsResourceExhausted(search_->Step(now_)));
    ASSERT_TRUE(Restart());
  }
  RunToEnd(1);
  for (const Trial& one : trials()) EXPECT_EQ(one.state, TrialState::kComplete);
}

TEST_F(SearchTest, EndsEarlyWhenAllIsStopped) {
  options_.admits = [](const Point&) { return false; };
  Open(v1::SWEEP_SCHEDULE_ASHA);
  Step();
  EXPECT_TRUE(search_->done());
  EXPECT_EQ(launcher_.starts, 0);
  ASSERT_EQ(trials().size(), 8u);
  for (const Trial& one : trials()) {
    EXPECT_EQ(one.state, TrialState::kPruned);
    EXPECT_EQ(one.why, "a constraint does not hold");
  }
  EXPECT_FALSE(BestTrial(search_->study(), *scheduler_).has_value());
}

TEST_F(SearchTest, CountsFailuresSinceTheLastProgressAndWaitsLonger) {
  options_.max_trials = 1;
  Open(v1::SWEEP_SCHEDULE_NONE);
  for (uint64_t steps : {50u, 100u, 150u, 200u}) {  // Each gets further.
    Step();
    ASSERT_EQ(launcher_.active(), 1u);
    launcher_.End(0, JobEnd::How::kFailed, steps);
    Step();
    now_ += absl::Minutes(1);
  }
  Step();
  EXPECT_EQ(trials()[0].state, TrialState::kRunning);
  launcher_.End(0, JobEnd::How::kFailed);
  Step();
  Step();
  EXPECT_EQ(launcher_.active(), 0u);  // Not before a second has passed.
  now_ += absl::Seconds(3);
  Step();
  EXPECT_EQ(launcher_.active(), 1u);
}

// Another trial in its place would be suggested without its result: another search than without the crash.
TEST_F(SearchTest, KeepsTheSlotOfARunThatWaitsForItsNextTry) {
  launcher_ = FakeLauncher(1);
  options_.max_trials = 2;
  Open(v1::SWEEP_SCHEDULE_NONE);
  Step();
  ASSERT_TRUE(Restart());
  launcher_.folders_in_use = 2;  // What the crash left behind still ends.
  for (int round = 0; round < 4; ++round) {
    Step();
    EXPECT_EQ(trials().size(), 1u);
    EXPECT_EQ(launcher_.active(), 0u);
  }
  Step();
  ASSERT_EQ(launcher_.active(), 1u);
  launcher_.End(0, JobEnd::How::kFailed);
  for (int round = 0; round < 9; ++round) Step();
  EXPECT_EQ(trials().size(), 1u);
  EXPECT_EQ(launcher_.active(), 0u);
  RunToEnd(1);
  EXPECT_EQ(trials().size(), 2u);
  for (const Trial& one : trials()) EXPECT_EQ(one.state, TrialState::kComplete);
}

TEST_F(SearchTest, EndsATrialThatIsRefusedAtOnce) {
  options_.max_trials = 1;
  Open(v1::SWEEP_SCHEDULE_NONE);
  Step();
  launcher_.End(0, JobEnd::How::kRefused);
  Step();
  EXPECT_EQ(trials()[0].state, TrialState::kFailed);
  EXPECT_TRUE(search_->done());
}

TEST_F(SearchTest, StopsAtItsBudgetAndGoesOnWithALargerOne) {
  options_.max_core_hours = 25.0 / 3600;  // Each job takes ten seconds.
  Open(v1::SWEEP_SCHEDULE_NONE);
  RunToEnd(1);
  EXPECT_TRUE(search_->out_of_budget());
  EXPECT_LT(trials().size(), 8u);
  options_.max_core_hours = 0;
  ASSERT_TRUE(Restart());
  RunToEnd(1);
  EXPECT_EQ(trials().size(), 8u);
  for (const Trial& one : trials()) EXPECT_EQ(one.state, TrialState::kComplete);
}

TEST_F(SearchTest, AStopLosesNothing) {
  Open(v1::SWEEP_SCHEDULE_ASHA);
  for (int i = 0; i < 5; ++i) {
    Step();
    if (launcher_.active() > 1) launcher_.End(1);
  }
  search_->Stop();
  Step();
  EXPECT_TRUE(search_->done());
  EXPECT_EQ(launcher_.active(), 0u);
  ASSERT_TRUE(Restart());
  RunToEnd(3);
  EXPECT_EQ(trials().size(), 8u);
}

TEST_F(SearchTest, AMetricWithoutAValueAtTheEndIsAFailure) {
  options_.max_trials = 1;
  launcher_.SetValueFrom(500);
  Open(v1::SWEEP_SCHEDULE_NONE);
  Step();
  launcher_.End(0);
  Step();
  EXPECT_EQ(trials()[0].state, TrialState::kFailed);
  EXPECT_THAT(trials()[0].why, HasSubstr("no value at 400"));
}

TEST_F(SearchTest, ARungBeforeTheFirstValueIsTheWorstAndNoFailure) {
  launcher_.SetValueFrom(150);  // As before an episode has ended; the first rung is at 100.
  Open(v1::SWEEP_SCHEDULE_ASHA);
  RunToEnd(1, true);
  ASSERT_EQ(trials().size(), 8u);
  int at_200 = 0, complete = 0;
  for (const Trial& one : trials()) {
    EXPECT_NE(one.state, TrialState::kFailed);
    EXPECT_EQ(one.results.at(0), -std::numeric_limits<double>::infinity());
    at_200 += one.has_result(1) ? 1 : 0;
    complete += one.state == TrialState::kComplete ? 1 : 0;
  }
  EXPECT_GE(at_200, 4);
  EXPECT_GE(complete, 2);
  EXPECT_TRUE(std::isfinite(trials()[*BestTrial(search_->study(), *scheduler_)].results.rbegin()->second));
}

// Prints what docs/benchmarks/sweeps.md quotes; checks that all are there.
TEST_F(SearchTest, GoesOnWithTenThousandTrials) {
  constexpr uint32_t kTrials = 10000;
  options_.max_trials = kTrials + 100;
  Open(v1::SWEEP_SCHEDULE_ASHA);
  const Admits all = [](const Point&) { return true; };
  const std::string journal = folder_.path() + "/journal.log";
  {
    std::ofstream file(journal, std::ios::app);
    const Study& study = record_->search();
    for (uint32_t i = 0; i < kTrials; ++i) {
      // As Study::Report would write it, were the trial there already.
      auto trial = study.CreateTrial(*DrawPoint(file_.space, 1, i, all), 0, 0, nullptr);
      trial["user_attrs"]["rung 0"] = nlohmann::json::array({*DrawPoint(file_.space, 2, i, all)->front()});
      trial["intermediate_values"] = {{"100", 1.5}};
      file << trial.dump() << "\n";
    }
  }
  absl::Duration begin = MonotonicNow();
  ASSERT_TRUE(Restart());
  const absl::Duration opened = MonotonicNow() - begin;
  EXPECT_EQ(trials().size(), kTrials);
  absl::Duration rounds;
  constexpr int kRounds = 50;
  for (int i = 0; i < kRounds; ++i) {
    begin = MonotonicNow();
    Step();
    rounds += MonotonicNow() - begin;
    ASSERT_EQ(launcher_.active(), 3u);
    for (int job = 0; job < 3; ++job) launcher_.End(0);
  }
  begin = MonotonicNow();
  constexpr int kSuggestions = 100;
  for (int i = 0; i < kSuggestions; ++i) ASSERT_TRUE(suggester_->Suggest(trials()).ok());
  const absl::Duration suggestions = MonotonicNow() - begin;
  std::cout << "journal of 10,000 trials opened in " << opened << "; a round that starts three jobs "
            << rounds / kRounds << "; a suggestion " << suggestions / kSuggestions << std::endl;
}

// What a suggestion costs does not grow with the number of draws before: draws are by number, and each trial is looked
// at once.
TEST(Search10000, DrawsPointsByNumberAlone) {
  Space space;
  Parameter x;
  x.kind = Parameter::Kind::kReal;
  x.high = 1;
  space.parameters = {x};
  size_t asked = 0;
  RandomSuggester suggester(space, 1, [&](const Point&) { return ++asked > 0; });
  std::vector<Trial> trials(10000);
  for (uint32_t i = 0; i < trials.size(); ++i) trials[i].point = {static_cast<double>(i)};
  ASSERT_TRUE(suggester.Suggest(trials).ok());
  EXPECT_EQ(asked, 1u);
}

}  // namespace
}  // namespace skein
