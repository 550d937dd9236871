// SPDX-License-Identifier: Apache-2.0
// Learner ranks that are killed, and come back.
#include <csignal>

#include "gmock/gmock.h"
#include "tests/faults/ranks.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kBarrier = absl::Seconds(10), kCollective = absl::Seconds(10);

// The other one goes on; a successor is taken in, and both end with the same parameters and whole books.
void KillAndReplace(int lost) {
  ElasticRun run(1, kBarrier, kCollective);
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  auto& victim = lost == 0 ? run.rank_0 : run.rank_1;
  Running& survivor = lost == 0 ? *run.rank_1 : *run.rank_0;
  victim->Kill();
  EXPECT_EQ(survivor.WaitForOutput("goes on at \\d+ env steps with (\\d) of 2 ranks", absl::Seconds(60)), "1");
  ASSERT_TRUE(run.WaitForIterations(5));
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_ranks"), 1);
  EXPECT_GE(ElasticRun::Metric(survivor, "skein_learner_reformations_total"), 1);

  victim = run.StartRank(lost);
  survivor.WaitForOutput("goes on at \\d+ env steps with (2) of 2 ranks", absl::Seconds(60));
  ASSERT_TRUE(run.WaitForIterations(5));
  EXPECT_EQ(ElasticRun::Metric(*victim, "skein_learner_ranks"), 2);
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_ranks"), 2);
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_env_steps_imbalance"), 0);
  run.StopAndExpectClosedBooks({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeBatches();
}

TEST(FaultRow08, AfterRankOneIsKilledRankZeroGoesOnAndTakesItsSuccessorIn) { KillAndReplace(1); }

TEST(FaultRow08, AfterRankZeroIsKilledRankOneLeadsAndTakesItsSuccessorIn) { KillAndReplace(0); }

TEST(FaultRow08, UnderSkeinTrainALostRankIsStartedAgainAndTheRunReachesItsTarget) {
  const ScratchFolder runs;
  Running skein("skein", {"train",
                          "--config",
                          "configs/cartpole_ppo.yaml",
                          "--learners",
                          "2",
                          "--runners",
                          "2",
                          "--runs-dir",
                          runs.path(),
                          "--name",
                          "run",
                          "--no-eval",
                          "--steps",
                          "61440",
                          "--set",
                          "learner.min_ranks=1",
                          "--set",
                          "coordinator.lease_seconds=2",
                          "--set",
                          "coordinator.heartbeat_seconds=0.2",
                          "--set",
                          "checkpoint.interval_steps=10240"});
  const std::string folder = runs.path() + "/run";
  ASSERT_TRUE(WaitUntil([&] { return skein.ended() || !NewestCheckpoint(folder).empty(); }, absl::Minutes(1)));
  const auto learner = FindChild(skein.pid(), "skein-learner");
  ASSERT_TRUE(learner);
  kill(*learner, SIGKILL);
  EXPECT_EQ(skein.WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(skein.Output(), HasSubstr("was ended by signal 9"));
  const v1::StepAccount account = Account(folder);
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), 61440u);
  EXPECT_EQ(account.pending(), 0u);
}

TEST(FaultRow09, WithFewerThanTheLeastNumberTheRunIsBlockedUntilTheMissingOneReturns) {
  ElasticRun run(0, kBarrier, kCollective);  // 0: all.
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.rank_1->Kill();
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_BLOCKED));
  const v1::RunProgress blocked = run.Progress();
  EXPECT_EQ(blocked.last_error(), "learner rank 1 is missing: 1 of 2 is here, learner.min_ranks is 2");
  EXPECT_FALSE(run.rank_0->ended());

  run.rank_1 = run.StartRank(1);
  // Both go on from where rank 0 stood.
  const std::string steps = run.rank_1->WaitForOutput("goes on at (\\d+) env steps with 2 of 2 ranks");
  EXPECT_EQ(steps, std::to_string(blocked.env_steps()));
  EXPECT_EQ(run.rank_0->WaitForOutput("goes on at (\\d+) env steps with 2 of 2 ranks"), steps);
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_TRAINING));
  ASSERT_TRUE(run.WaitForIterations(5));
  EXPECT_EQ(run.Progress().last_error(), "");
  run.StopAndExpectClosedBooks({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeBatches();
}

TEST(FaultRow09, ABlockedRunThatIsStoppedSavesWhereItIs) {
  ElasticRun run(2, kBarrier, kCollective);
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.rank_1->Kill();
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_BLOCKED));
  const uint64_t env_steps = run.Progress().env_steps();
  run.StopAndExpectClosedBooks({run.rank_0.get()});
  EXPECT_THAT(NewestCheckpoint(run.cluster.run_folder()), HasSubstr(std::to_string(env_steps)));
}

}  // namespace
}  // namespace skein
