// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_clock.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr absl::Duration kPatience = absl::Milliseconds(500);

TEST(AnswerClock, CountsSilenceFromTheLastAnswer) {
  AnswerClock clock;
  clock.Answered(absl::Seconds(10));
  for (int second = 11; second < 15; ++second) {
    const absl::Duration asked = absl::Seconds(second);
    clock.Missed(asked, asked, kPatience, asked + kPatience);
  }
  EXPECT_EQ(clock.Silence(absl::Seconds(15)), absl::Seconds(5));
  clock.Answered(absl::Seconds(16));
  EXPECT_EQ(clock.Silence(absl::Seconds(16)), absl::ZeroDuration());
}

TEST(AnswerClock, TimeForWhichTheAskerWasLateIsNoSilence) {
  AnswerClock clock;
  clock.Answered(absl::Seconds(10));
  // Asked 3 s late, and the call that was to end after 0.5 s took 2 s.
  clock.Missed(absl::Seconds(11), absl::Seconds(14), kPatience, absl::Seconds(16));
  EXPECT_EQ(clock.Silence(absl::Seconds(16)), absl::Seconds(1.5));
  clock.Missed(absl::Seconds(17), absl::Seconds(17), kPatience, absl::Seconds(17.25));  // Refused at once.
  EXPECT_EQ(clock.Silence(absl::Seconds(20)), absl::Seconds(5.5));
  clock.Answered(absl::Seconds(21));
  EXPECT_EQ(clock.Silence(absl::Seconds(22)), absl::Seconds(1));
}

}  // namespace
}  // namespace skein
