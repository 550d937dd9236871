// SPDX-License-Identifier: Apache-2.0
// Learner ranks that stop answering.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/faults/ranks.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kLoaded = absl::Seconds(2);  // That a loaded machine may be late.

TEST(FaultRow10, TheBarrierOfTheOthersTimesOutNamingTheStoppedRankAndTheyGoOn) {
  const absl::Duration barrier = absl::Seconds(4);
  ElasticRun run(1, barrier, absl::Seconds(10));
  run.Start(0);
  // Without actors both meet again and again, and enter no collective.
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_WAITING_FOR_DATA));
  const absl::Time stopped = absl::Now();
  run.rank_1->Signal(SIGSTOP);
  // "meeting the other ranks: barrier "train" ... timed out with 1 of 2 arrived, 1 missing; absent: learner-1 (gone)"
  EXPECT_EQ(run.rank_0->WaitForOutput("meeting the other ranks: .* absent: (learner-\\d)"), "learner-1");
  // It came to the barrier within the second that rounds without data take.
  EXPECT_GE(absl::Now() - stopped, barrier - absl::Seconds(0.5));
  EXPECT_LT(absl::Now() - stopped, barrier + absl::Seconds(1) + kLoaded);
  run.rank_0->WaitForOutput("goes on at \\d+ env steps with (1) of 2 ranks");
  run.actors.push_back(run.cluster.StartActor());
  ASSERT_TRUE(run.WaitForIterations(5));  // So it is in no collective.

  // The one that was away is told so, and its successor is taken in.
  run.rank_1->Signal(SIGCONT);
  EXPECT_EQ(run.rank_1->WaitForEnd(), 75);
  EXPECT_THAT(run.rank_1->Output(), HasSubstr("have gone on without rank 1"));
  ASSERT_TRUE(run.WaitForIterations(5));
  run.rank_1 = run.StartRank(1);
  run.rank_1->WaitForOutput("goes on at \\d+ env steps with (2) of 2 ranks");
  run.actors.push_back(run.cluster.StartActor());
  ASSERT_TRUE(run.WaitForIterations(5));
  run.StopAndExpectClosedAccounts({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeIterations();
}

TEST(FaultRow10, ARankThatIsStoppedInsideACollectiveIsNamedAndTheOtherDoesNotStayThere) {
  const absl::Duration collective = absl::Seconds(4);
  ElasticRun run(1, absl::Seconds(4), collective);
  std::mt19937 random = FaultRandom(10);
  const std::string fault = absl::StrCat("collective:hang@at=", Choose(&random, 40, 120));
  SayChoice(absl::StrCat("rank 1 is stopped at ", fault));
  run.rank_0 = run.StartRank(0);
  run.rank_1 = run.StartRank(1, {"SKEIN_FAULTS=" + fault});
  for (int i = 0; i < 2; ++i) run.actors.push_back(run.cluster.StartActor());
  // In there it waits until it is stopped, so that it is there for certain.
  run.rank_1->WaitForOutput(absl::StrCat("(", fault, " at passage)"));
  const absl::Time stopped = absl::Now();
  run.rank_1->Signal(SIGSTOP);
  // "... failed within 4s: nothing yet from rank 1; another rank is late ...; the ranks meet again"
  EXPECT_EQ(run.rank_0->WaitForOutput("failed within \\S+ nothing yet from rank (\\d); .*the ranks meet again"), "1");
  EXPECT_LT(absl::Now() - stopped, collective + kLoaded);
  run.rank_0->WaitForOutput("goes on at \\d+ env steps with (1) of 2 ranks");
  ASSERT_TRUE(run.WaitForIterations(5));  // By the thread that was in there.
  EXPECT_FALSE(run.rank_0->ended());      // Its watchdog had nothing to end.
  EXPECT_EQ(ElasticRun::Metric(*run.rank_0, "skein_learner_ranks"), 1);

  run.rank_1->Signal(SIGCONT);  // Time is long up for what it hangs in.
  EXPECT_EQ(run.rank_1->WaitForEnd(), 75);
  run.rank_1 = run.StartRank(1);
  run.rank_1->WaitForOutput("goes on at \\d+ env steps with (2) of 2 ranks");
  run.ExpectEqualParameters();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.StopAndExpectClosedAccounts({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeIterations();
}

TEST(FaultRow11, ACollectiveThatNeverCompletesEndsItsProcessNamingItAndTheOthersGoOn) {
  const absl::Duration collective = absl::Seconds(3);
  ElasticRun run(1, absl::Seconds(10), collective);
  run.rank_0 = run.StartRank(0);
  std::mt19937 random = FaultRandom(11);
  const std::string fault = absl::StrCat("collective:hang@at=", Choose(&random, 40, 120));
  SayChoice(absl::StrCat("rank 1 hangs at ", fault));
  run.rank_1 = run.StartRank(1, {"SKEIN_FAULTS=" + fault});
  for (int i = 0; i < 2; ++i) run.actors.push_back(run.cluster.StartActor());
  run.rank_1->WaitForOutput(absl::StrCat("(", fault, " at passage)"));
  const absl::Time hung = absl::Now();
  EXPECT_EQ(run.rank_1->WaitForEnd(), 75);
  EXPECT_LT(absl::Now() - hung, collective + absl::Seconds(5));
  const std::string named = FirstMatch(run.rank_1->Output(),
                                       "(all-reduce|gather|gather of bytes|broadcast) on rank 1 of 2 "
                                       "has not ended within 6s: ending this process");
  EXPECT_FALSE(named.empty());
  run.rank_0->WaitForOutput("goes on at \\d+ env steps with (1) of 2 ranks");
  ASSERT_TRUE(run.WaitForIterations(5));
  run.StopAndExpectClosedAccounts({run.rank_0.get()});
  run.ExpectWholeIterations();
}

}  // namespace
}  // namespace skein
