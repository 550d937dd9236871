// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "sweep/importance.h"
#include "sweep/interval.h"
#include "sweep/run_log.h"
#include "sweep/sweep_record.h"
#include "sweep/sweep_report.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Interval, OfAMeanIsStudents) {
  // Mean 2, deviation 1, error 1 / sqrt 3; t of 2 degrees of freedom 4.303.
  const Interval interval = MeanInterval({1, 2, 3});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.half, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_TRUE(std::isinf(MeanInterval({1}).half));
}

TEST(Interval, OfADifferenceIsWelchs) {
  // Squared errors 1/3 and 4/3; degrees (5/3)^2 / ((1/9)/2 + (16/9)/2) = 2.94, rounded down 2.
  const Interval interval = DifferenceInterval({11, 12, 13}, {2, 4, 6});
  EXPECT_DOUBLE_EQ(interval.mean, 8);
  EXPECT_NEAR(interval.half, 4.303 * std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(DifferenceInterval({1, 1}, {2, 2}).half, 0);
}

// Trials of a choice and of a number whose results at the first rung are what the choice says.
std::vector<Trial> TrialsByChoice(size_t count) {
  std::vector<Trial> trials(count);
  for (uint32_t i = 0; i < count; ++i) {
    trials[i].number = i;
    trials[i].point = {static_cast<double>(i % 2), static_cast<double>(i)};
    trials[i].results[0] = i % 2;
  }
  return trials;
}

Space ChoiceAndNumber() {
  Space space;
  Parameter choice, number;
  choice.choices = {"a", "b"};
  number.kind = Parameter::Kind::kReal;
  number.high = 8;
  space.parameters = {choice, number};
  return space;
}

TEST(Importance, IsTheShareOfSpreadThatAParameterExplains) {
  const Space space = ChoiceAndNumber();
  const auto scheduler = MakeScheduler(v1::SweepConfig(), 100);
  std::vector<Trial> trials = TrialsByChoice(8);
  const Importance importance = ImportanceOf(space, trials, *scheduler);
  EXPECT_EQ(importance.env_steps, 100u);
  EXPECT_EQ(importance.trials, 8u);
  EXPECT_THAT(importance.shares, ElementsAre(1, 0));  // Each quarter of the numbers has one of both.
  trials.resize(2);
  EXPECT_THAT(ImportanceOf(space, trials, *scheduler).shares, ElementsAre(0, 0));
}

TEST(Importance, ComparesAtTheHighestRungThatEnoughTrialsHave) {
  const Space space = ChoiceAndNumber();
  v1::SweepConfig config;
  config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_ASHA);
  config.mutable_scheduler()->set_min_steps(100);
  config.mutable_scheduler()->set_reduction(2);
  const auto scheduler = MakeScheduler(config, 400);  // Rungs at 100, 200 and 400.
  std::vector<Trial> trials = TrialsByChoice(21);
  for (uint32_t i = 0; i < 10; ++i) trials[i].results[1] = i;
  for (uint32_t i = 0; i < 3; ++i) trials[i].results[2] = i;
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).env_steps, 200u);
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).trials, 10u);
  trials[9].results.erase(1);
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).env_steps, 100u);
  EXPECT_DOUBLE_EQ(ImportanceOf(space, trials, *scheduler).shares[0], 1);
  trials.resize(9);  // No rung has ten; 100 and 200 have nine.
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).env_steps, 200u);
}

// The rungs of a bracket begin where its first one is: equal numbers are not equal steps.
TEST(Importance, ComparesBracketsAtEqualSteps) {
  const Space space = ChoiceAndNumber();
  v1::SweepConfig config;
  config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_HYPERBAND);
  config.mutable_scheduler()->set_min_steps(100);
  config.mutable_scheduler()->set_reduction(2);
  const auto scheduler = MakeScheduler(config, 200);
  ASSERT_THAT(scheduler->rungs(0), ElementsAre(100, 200));
  ASSERT_THAT(scheduler->rungs(1), ElementsAre(200));
  std::vector<Trial> trials = TrialsByChoice(4);
  for (Trial& one : trials) one.group = 1;
  trials[0].group = 0;
  trials[0].results[1] = 0;
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).env_steps, 200u);
  EXPECT_EQ(ImportanceOf(space, trials, *scheduler).trials, 4u);
  EXPECT_DOUBLE_EQ(ImportanceOf(space, trials, *scheduler).shares[0], 1);
}

// The base, a best configuration, and one that is better after more trials.
TEST(Report, ComparesTheBestConfigurationThatIsTheBestNow) {
  Space space;
  Parameter x;
  x.path = "ppo.lr";
  x.kind = Parameter::Kind::kReal;
  x.high = 1;
  space.parameters = {x};
  const ScratchFolder folder;
  SweepFile file;
  file.space = space;
  file.config.set_name("s");
  auto record = SweepRecord::Open(folder.path() + "/journal.log", file, "one");
  ASSERT_TRUE(record.ok()) << record.status();
  const Study& test = (*record)->test();
  const auto add = [&](const Point& point, const std::vector<double>& values) {
    const auto number = static_cast<uint32_t>(test.trials().size());
    ASSERT_TRUE((*record)->Write({test.CreateTrial(point, 0, 0, nullptr)}).ok());
    const bool failed = values.empty();
    ASSERT_TRUE((*record)
                    ->Write(failed ? test.End(number, TrialState::kFailed, "it fell over")
                                   : test.Report(number, 0, 100, values, true))
                    .ok());
  };
  const Point base = {std::nullopt}, first = {0.25}, second = {0.5};
  EXPECT_TRUE(TestJson(test, SidesOf(test, first)).is_null());
  add(base, {1, 2, 3});
  add(first, {4, 5, 6});
  EXPECT_EQ(TestJson(test, SidesOf(test, first))["difference"]["mean"], 3);
  EXPECT_TRUE(TestJson(test, SidesOf(test, second)).is_null());
  EXPECT_EQ(TestText(test, SidesOf(test, second), "m"), "");
  add(second, {});
  EXPECT_EQ(TestText(test, SidesOf(test, second), "m"), "the test of the best configuration has failed: it fell over");
  EXPECT_TRUE(TestJson(test, SidesOf(test, second)).contains("error"));
  add(second, {11, 12, 13});
  EXPECT_EQ(TestJson(test, SidesOf(test, second))["difference"]["mean"], 10);
  EXPECT_THAT(TestText(test, SidesOf(test, second), "m"), HasSubstr("best configuration: m 12 +- "));
  EXPECT_EQ(TestFailure(test, SidesOf(test, second)), "");
}

// All that are complete have been trained equally long, whatever the number of their rungs.
TEST(Report, TheBestOfAllBracketsIsTheBest) {
  Space space;
  Parameter x;
  x.path = "ppo.lr";
  x.kind = Parameter::Kind::kReal;
  space.parameters = {x};
  const ScratchFolder folder;
  SweepFile file;
  file.space = space;
  file.config.set_name("s");
  file.config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_HYPERBAND);
  file.config.mutable_scheduler()->set_min_steps(100);
  file.config.mutable_scheduler()->set_reduction(2);
  const auto scheduler = MakeScheduler(file.config, 400);
  ASSERT_THAT(scheduler->rungs(0), ElementsAre(100, 200, 400));
  ASSERT_THAT(scheduler->rungs(1), ElementsAre(200, 400));
  const auto record = *SweepRecord::Open(folder.path() + "/journal.log", file, "one");
  const Study& search = record->search();
  const auto report = [&](uint32_t number, uint32_t rung, uint64_t steps, double value) {
    ASSERT_TRUE(record->Write({search.Promote(number, rung)}).ok());
    ASSERT_TRUE(record->Write(search.Report(number, rung, steps, {value}, steps == 400)).ok());
  };
  for (const uint32_t bracket : {0, 1, 2}) {
    ASSERT_TRUE(record->Write({search.CreateTrial({0.5}, 0, bracket, nullptr)}).ok());
  }
  report(0, 0, 100, 9);
  report(1, 0, 200, 5);
  EXPECT_EQ(BestTrial(search, *scheduler), 1u);  // It came further, in fewer rungs.
  report(0, 1, 200, 6);
  EXPECT_EQ(BestTrial(search, *scheduler), 0u);
  report(0, 2, 400, 7);
  report(1, 1, 400, 6);
  EXPECT_EQ(BestTrial(search, *scheduler), 0u);
  report(2, 0, 400, 8);
  EXPECT_EQ(BestTrial(search, *scheduler), 2u);
}

TEST(RunLog, FollowsAFileThatGrowsAndIsCut) {
  const ScratchFolder folder;
  RunLog log(folder.path() + "/metrics.jsonl", "update.kl");
  EXPECT_TRUE(log.Update().ok());
  EXPECT_FALSE(log.ValueAt(1));
  const std::string first =
      "{\"iteration\":0,\"env_steps\":0}\n{\"iteration\":1,\"env_steps\":10,\"update\":{\"kl\":null}}\n";
  folder.Write("metrics.jsonl", first + "{\"iteration\":2,\"env_ste");
  EXPECT_TRUE(log.Update().ok());
  EXPECT_EQ(log.steps(), 10u);
  EXPECT_TRUE(std::isnan(*log.ValueAt(5)));  // Reached, without a value.
  folder.Write("metrics.jsonl", first + "{\"iteration\":2,\"env_steps\":20,\"update\":{\"kl\":0.5}}\n");
  EXPECT_TRUE(log.Update().ok());
  EXPECT_TRUE(std::isnan(*log.ValueAt(5)));  // Later lines change nothing.
  EXPECT_EQ(*log.ValueAt(11), 0.5);
  EXPECT_FALSE(log.ValueAt(21));
  folder.Write("metrics.jsonl", first + "{\"iteration\":2,\"env_steps\":20,\"update\":{\"kl\":0.5}}\n" +
                                    "{\"iteration\":3,\"env_steps\":30,\"update\":{\"kl\":null}}\n");
  EXPECT_TRUE(log.Update().ok());
  EXPECT_EQ(*log.ValueAt(30), 0.5);  // The newest until then.
  folder.Write("metrics.jsonl", first);
  EXPECT_TRUE(log.Update().ok());
  EXPECT_EQ(log.steps(), 10u);
}

// As metrics of episodes: the line of an iteration in which a callback logged nothing lacks its name.
TEST(RunLog, ACallbackNeedNotLogInEachIteration) {
  const ScratchFolder folder;
  folder.Write("metrics.jsonl",
               "{\"iteration\":1,\"env_steps\":10}\n"
               "{\"iteration\":2,\"env_steps\":20,\"callback\":{\"to.go\":3}}\n"
               "{\"iteration\":3,\"env_steps\":30,\"callback\":{\"other\":1}}\n");
  RunLog log(folder.path() + "/metrics.jsonl", "callback.to.go");
  EXPECT_EQ(log.Update(), absl::OkStatus());
  EXPECT_TRUE(std::isnan(*log.ValueAt(10)));
  EXPECT_EQ(*log.ValueAt(20), 3);
  EXPECT_EQ(*log.ValueAt(30), 3);
}

TEST(RunLog, NamesTheNearestOfWhatTheLineHas) {
  const ScratchFolder folder;
  folder.Write("metrics.jsonl", "{\"iteration\":1,\"env_steps\":10,\"update\":{\"kl\":1,\"entropy\":2}}\n");
  RunLog log(folder.path() + "/metrics.jsonl", "update.entrpy");
  const absl::Status status = log.Update();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no 'update.entrpy'; the nearest is 'update.entropy'"));
}

}  // namespace
}  // namespace skein
