// SPDX-License-Identifier: Apache-2.0
#include "learner/run/failure_streak.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(FailureStreak, IsHopelessAfterManyThatLastedLong) {
  FailureStreak streak;
  EXPECT_FALSE(streak.hopeless());
  for (int i = 0; i < 100; ++i) streak.Note(false, absl::Milliseconds(100 * i));  // For 9.9 s.
  EXPECT_EQ(streak.length(), 100);
  EXPECT_FALSE(streak.hopeless());
  streak.Note(false, absl::Seconds(60));
  EXPECT_TRUE(streak.hopeless());
}

TEST(FailureStreak, AFewFailuresAreNotMany) {
  FailureStreak streak;
  for (int i = 0; i < FailureStreak::kFailures - 1; ++i) {
    streak.Note(false, absl::Hours(i));
    EXPECT_FALSE(streak.hopeless()) << i;
  }
  streak.Note(false, absl::Hours(9));
  EXPECT_TRUE(streak.hopeless());
}

TEST(FailureStreak, ASuccessEndsIt) {
  FailureStreak streak;
  for (int i = 0; i < 10; ++i) streak.Note(false, absl::Minutes(i));
  EXPECT_TRUE(streak.hopeless());
  streak.Note(true, absl::Minutes(10));
  EXPECT_EQ(streak.length(), 0);
  EXPECT_FALSE(streak.hopeless());
  streak.Note(false, absl::Minutes(11));
  EXPECT_EQ(streak.length(), 1);
  EXPECT_FALSE(streak.hopeless());
}

}  // namespace
}  // namespace skein
