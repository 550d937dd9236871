// SPDX-License-Identifier: Apache-2.0
// Learner ranks that stop answering.
#include <csignal>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/faults/ranks.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

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
  EXPECT_LT(absl::Now() - stopped, barrier + absl::Seconds(5));
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
  run.StopAndExpectClosedBooks({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeBatches();
}

TEST(FaultRow11, ACollectiveThatNeverCompletesEndsItsProcessNamingItAndTheOthersGoOn) {
  const absl::Duration collective = absl::Seconds(3);
  ElasticRun run(1, absl::Seconds(10), collective);
  run.rank_0 = run.StartRank(0);
  run.rank_1 = run.StartRank(1, {"SKEIN_FAULTS=collective:hang@at=60"});
  for (int i = 0; i < 2; ++i) run.actors.push_back(run.cluster.StartActor());
  run.rank_1->WaitForOutput("(collective:hang@at=60 at passage)");
  const absl::Time hung = absl::Now();
  EXPECT_EQ(run.rank_1->WaitForEnd(), 75);
  EXPECT_LT(absl::Now() - hung, collective + absl::Seconds(5));
  const std::string named = FirstMatch(run.rank_1->Output(),
                                       "(all-reduce|gather|gather of bytes|broadcast) on rank 1 of 2 "
                                       "has not ended within 6s: ending this process");
  EXPECT_FALSE(named.empty());
  run.rank_0->WaitForOutput("goes on at \\d+ env steps with (1) of 2 ranks");
  ASSERT_TRUE(run.WaitForIterations(5));
  run.StopAndExpectClosedBooks({run.rank_0.get()});
  run.ExpectWholeBatches();
}

}  // namespace
}  // namespace skein
