// SPDX-License-Identifier: Apache-2.0
// The table of learner/collect/ticket_timing.h.
#include "learner/collect/ticket_timing.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(TicketTiming, NothingIsHeldAgainstAnActorWhileNoSpeedIsKnown) {
  const TicketDeadlines deadlines = DeadlinesOf(absl::ZeroDuration(), absl::ZeroDuration(), 2);
  EXPECT_EQ(deadlines.late, absl::Seconds(5));
  EXPECT_EQ(deadlines.taken_back, absl::Seconds(60));
  EXPECT_EQ(deadlines.void_free, absl::Seconds(10));
  EXPECT_EQ(deadlines.void_unserved, absl::InfiniteDuration());
}

TEST(TicketTiming, DeadlinesFollowTheActorsUsualTime) {
  // An average of 3 s, with two tickets for each runner: u = 6 s.
  const TicketDeadlines deadlines = DeadlinesOf(absl::Seconds(3), absl::Seconds(1), 2);
  EXPECT_EQ(deadlines.late, absl::Seconds(12));
  EXPECT_EQ(deadlines.taken_back, absl::Seconds(60));
  EXPECT_EQ(deadlines.void_free, absl::Seconds(12));
  EXPECT_EQ(deadlines.void_unserved, absl::Seconds(30));
}

TEST(TicketTiming, AnActorWithoutAnAverageIsJudgedByTheFastest) {
  const TicketDeadlines deadlines = DeadlinesOf(absl::ZeroDuration(), absl::Milliseconds(100), 1);
  EXPECT_EQ(deadlines.late, absl::Milliseconds(200));
  EXPECT_EQ(deadlines.taken_back, absl::Seconds(5));  // 10 u is 1 s.
  EXPECT_EQ(deadlines.void_free, absl::Seconds(1));
  EXPECT_EQ(deadlines.void_unserved, absl::Seconds(1));
}

TEST(TicketTiming, SlowFragmentsAreWaitedForLonger) {
  // 10 u = 100 s is more than a minute, but not more than a hundred times the fastest one's 2 s.
  EXPECT_EQ(DeadlinesOf(absl::Seconds(10), absl::Seconds(2), 1).taken_back, absl::Seconds(100));
  EXPECT_EQ(DeadlinesOf(absl::Seconds(10), absl::Seconds(0.1), 1).taken_back, absl::Seconds(60));
}

}  // namespace
}  // namespace skein
