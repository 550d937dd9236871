// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_table.h"

#include <cstdio>
#include <limits>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "sweep/slot_use.h"
#include "sweep/sweep_display.h"
#include "sweep/sweep_record.h"
#include "sweep/sweep_summary.h"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/written.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A record of two rungs, 100 and 400 env steps.
class SweepTableTest : public testing::Test {
 protected:
  SweepTableTest() {
    Parameter x;
    x.path = "ppo.lr";
    x.kind = Parameter::Kind::kReal;
    x.high = 1;
    file_.space.parameters = {x};
    file_.config.set_name("s");
    file_.config.set_metric("episode_return_mean");
    v1::SweepConfig config;
    config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_ASHA);
    config.mutable_scheduler()->set_min_steps(100);
    config.mutable_scheduler()->set_reduction(4);
    scheduler_ = MakeScheduler(config, 400);
    record_ = *SweepRecord::Open(folder_.path() + "/journal.log", file_, "one");
  }

  // A trial with one seed; it ends at the last rung.
  void Add(double x, const std::vector<double>& results) {
    const Study& study = record_->search();
    const auto number = static_cast<uint32_t>(study.trials().size());
    ASSERT_TRUE(record_->Write({study.CreateTrial({x}, 0, 0, nullptr)}).ok());
    for (uint32_t rung = 0; rung < results.size(); ++rung) {
      if (rung > 0) {
        ASSERT_TRUE(record_->Write({study.Promote(number, rung)}).ok());
      }
      ASSERT_TRUE(record_->Write(study.Report(number, rung, rung == 0 ? 100 : 400, {results[rung]}, rung == 1)).ok());
    }
  }

  const ScratchFolder folder_;
  SweepFile file_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<SweepRecord> record_;
};

TEST_F(SweepTableTest, ShowsTheBestOfTheFurthestFirst) {
  Add(0.25, {5});
  Add(0.5, {7, 8});
  Add(0.75, {});
  Add(0.125, {6});
  Add(0.0625, {std::numeric_limits<double>::quiet_NaN()});  // No episode had ended.
  SweepTable table(&file_);
  const auto lines = table.Lines(record_->search(), *scheduler_, {0, 800, 1800, 2, 3}, absl::Seconds(10));
  EXPECT_THAT(lines, ElementsAre("1 ended, 1 running, 3 paused; 2 of 3 slots busy; 0.500 core-hours; ETA ?",
                                 StartsWith(" trial  state     env steps episode_return_mean"),
                                 "     1  complete        400            8  ppo.lr 0.5",
                                 "     3  paused          100            6  ppo.lr 0.125",
                                 "     0  paused          100            5  ppo.lr 0.25",
                                 "     4  paused          100            -  ppo.lr 0.0625"));
}

TEST_F(SweepTableTest, ShowsTwelveTrialsAtMost) {
  for (int i = 0; i < 15; ++i) Add(0.5, {static_cast<double>(i)});
  SweepTable table(&file_);
  const auto lines = table.Lines(record_->search(), *scheduler_, {}, absl::Seconds(10));
  ASSERT_EQ(lines.size(), 2u + 12);
  EXPECT_THAT(lines[2], StartsWith("    14  "));
}

TEST_F(SweepTableTest, EstimatesTheTimeLeftByTheRateSinceItBegan) {
  SweepTable table(&file_);
  const auto first_line = [&](double done, double expected, int second) {
    return table.Lines(record_->search(), *scheduler_, {done, expected, 0, 0, 1}, absl::Seconds(second)).front();
  };
  // 1,000 steps were there before it began. No rate is known yet.
  EXPECT_THAT(first_line(1000, 10000, 100), EndsWith("ETA ?"));
  EXPECT_THAT(first_line(1000, 10000, 110), EndsWith("ETA ?"));
  // 2,000 steps in 20 s: 100 a second; 7,000 are left.
  EXPECT_THAT(first_line(3000, 10000, 120), EndsWith("ETA 1m10s"));
  // More than was expected.
  EXPECT_THAT(first_line(10001, 10000, 130), EndsWith("ETA ?"));
}

TEST(SweepDisplay, WithoutATerminalWritesTheFirstLineNowAndThen) {
  const std::string text = Written([](std::FILE* out) {
    SweepDisplay display(out, 0);
    for (int second = 0; second <= 61; ++second) {
      if (second == 5) display.Say("trial 0 \x1b is stopped");
      display.Update({"counts", "head"}, absl::Seconds(second));
    }
  });
  // At 0, 30 and 60 s; what would steer a terminal is taken out of the news.
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(text, '\n')),
              ElementsAre("counts", StartsWith("trial 0 "), "counts", "counts", ""));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(SweepDisplay, OnATerminalRedrawsTheTableBelowTheNews) {
  const std::string text = Written([](std::FILE* out) {
    SweepDisplay display(out, 8);
    display.Update({"123456789", "b"}, absl::Seconds(0));
    display.Say("news");
    display.Update({"c"}, absl::Seconds(1));
    display.Finish();
    display.Say("the end");
  });
  // Seven columns, so that no line wraps; two lines up and cleared, the news, the same table; then the next table.
  // After Finish() the table stays.
  EXPECT_EQ(text,
            "1234567\nb\n"
            "\x1b[2A\x1b[Jnews\n1234567\nb\n"
            "\x1b[2A\x1b[Jc\n"
            "the end\nc\n");
}

TEST(SlotUse, IsTheTimeOfTrainingsOverTheTimeOfSlots) {
  SlotUse use;
  EXPECT_FALSE(use.share());
  use.Observe(absl::Seconds(100), 2, 2);
  EXPECT_FALSE(use.share());  // No time has passed.
  use.Observe(absl::Seconds(110), 1, 2);
  EXPECT_DOUBLE_EQ(*use.share(), 1);
  use.Observe(absl::Seconds(120), 3, 1);
  EXPECT_DOUBLE_EQ(*use.share(), 0.75);  // (2 x 10 + 1 x 10) / (2 x 10 + 2 x 10)
  // Two workers have left, and the sweep does not know yet how their trainings ended.
  use.Observe(absl::Seconds(130), 0, 1);
  EXPECT_DOUBLE_EQ(*use.share(), 60.0 / 70);
}

TEST_F(SweepTableTest, TheSummaryHasTheShareOfBusySlots) {
  Add(0.5, {7, 8});
  const RunLauncher launcher({.folder = folder_.path(), .metric = "episode_return_mean"}, &file_.space);
  const Search::Options options;
  SweepOutcome outcome;
  EXPECT_TRUE(SummaryJson(file_, *record_, *scheduler_, launcher, options, outcome)["slots_busy"].is_null());
  EXPECT_THAT(SummaryText(file_, *record_, *scheduler_, launcher, options, "runs/s", outcome), Not(HasSubstr("slots")));
  outcome.slots.Observe(absl::Seconds(0), 3, 4);
  outcome.slots.Observe(absl::Seconds(8), 0, 4);
  EXPECT_EQ(SummaryJson(file_, *record_, *scheduler_, launcher, options, outcome)["slots_busy"], 0.75);
  EXPECT_THAT(SummaryText(file_, *record_, *scheduler_, launcher, options, "runs/s", outcome),
              StartsWith("trials: 1 (runs/s/sweep.csv)\nslots: busy 75.0 % of the time\nbest: trial 0, "));
}

}  // namespace
}  // namespace skein
