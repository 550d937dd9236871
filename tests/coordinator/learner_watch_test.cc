// SPDX-License-Identifier: Apache-2.0
#include "coordinator/learner_watch.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

class LearnerWatchTest : public testing::Test {
 protected:
  // A report at `seconds`, of a learner whose training thread has finished so many seconds of work.
  void Report(double seconds, double update, double barrier = 0) {
    (*progress_.mutable_stage_seconds())["update"] = update;
    (*progress_.mutable_stage_seconds())["barrier"] = barrier;
    (*progress_.mutable_stage_seconds())["admit"] = seconds;  // By other threads.
    progress_.mutable_account()->set_collected(static_cast<uint64_t>(100 * seconds));
    watch_.Observe(progress_, absl::Seconds(seconds));
  }
  double Hangs(double seconds) const { return absl::ToDoubleSeconds(watch_.Hangs(absl::Seconds(seconds))); }

  v1::RunProgress progress_;
  LearnerWatch watch_{absl::Seconds(60)};
};

TEST_F(LearnerWatchTest, OneThatWorksOrWaitsDoesNotHang) {
  watch_.Begin(absl::ZeroDuration());
  for (int second = 0; second < 300; ++second) {
    Report(second, second < 100 ? second : 100, second < 100 ? 0 : second);
    EXPECT_EQ(Hangs(second + 1), 0);
  }
}

TEST_F(LearnerWatchTest, OneThatNeverBeginsHangsAfterItsPatience) {
  watch_.Begin(absl::Seconds(10));
  for (int second = 10; second <= 70; ++second) watch_.Observe(progress_, absl::Seconds(second));
  EXPECT_EQ(Hangs(70), 0);
  EXPECT_EQ(Hangs(71), 61);
}

TEST_F(LearnerWatchTest, DataThatArriveAreNoWorkOfTheTrainingThread) {
  watch_.Begin(absl::ZeroDuration());
  Report(1, 1);
  for (int second = 2; second < 62; ++second) Report(second, 1);
  EXPECT_EQ(Hangs(61), 0);
  EXPECT_EQ(Hangs(62), 61);
  Report(63, 2);
  EXPECT_EQ(Hangs(63), 0);
}

TEST_F(LearnerWatchTest, LongUpdatesAreGivenThreeTimesAsLong) {
  watch_.Begin(absl::ZeroDuration());
  Report(50, 1);  // It took 50 s to begin, which is no measure.
  EXPECT_EQ(Hangs(111), 61);
  Report(90, 40);  // An update of 40 s.
  EXPECT_EQ(Hangs(90 + 120), 0);
  EXPECT_EQ(Hangs(90 + 121), 121);
  watch_.Begin(absl::Seconds(300));  // Another learner.
  EXPECT_EQ(Hangs(361), 61);
}

}  // namespace
}  // namespace skein
