// SPDX-License-Identifier: Apache-2.0
// Row 21: an environment throws, crashes, hangs, observes what is not finite or not of its shape.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/cluster.h"
#include "tests/testing/scrape.h"

namespace skein {
namespace {

using testing::HasSubstr;

auto TrainedAtLeast(uint64_t env_steps) {
  return [env_steps](const v1::StatusResponse& status) { return status.progress().env_steps() >= env_steps; };
}

TEST(FaultRow21, OneThatFailsIsBuiltAnewAndTheRunIsTheSame) {
  const FaultyTraining training;
  const Ended ended = training.Train("env:throw@at=1000;env:nan@at=5000;env:shape@at=9000;env:nan@at=12000");
  EXPECT_EQ(ended.code, 0) << ended.out;
  const std::string log = training.Log("actor-1");
  EXPECT_EQ(Count(log, "it is built anew"), 4) << log;
  EXPECT_THAT(log, HasSubstr("threw: SKEIN_FAULTS says so"));
  EXPECT_EQ(Count(log, "observed a number that is not finite"), 2);
  EXPECT_EQ(Count(log, "observed more numbers than its spec says"), 1);
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow21, FailuresAreCountedAndNothingBadReachesTheLearner) {
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto actor = cluster.StartActor("", {"SKEIN_FAULTS=env:nan@at=100;env:throw@at=300;env:shape@at=500"});
  ASSERT_TRUE(cluster.WaitForStatus(TrainedAtLeast(4096)));
  const int port = std::stoi(FirstMatch(actor->Output(), "metrics=\\S+:(\\d+)"));
  const int learner = std::stoi(FirstMatch(cluster.learner().Output(), "metrics=\\S+:(\\d+)"));
  EXPECT_EQ(Scrape(port, "skein_actor_env_failures_total"), 3);
  EXPECT_EQ(Scrape(learner, "skein_learner_quarantined_total{what=\"batch\"}"), 0);
  EXPECT_EQ(Scrape(learner, "skein_learner_batches_total{result=\"rejected\"}"), 0);
}

TEST(FaultRow21, TooManyFailuresEndTheActorAndNotTheRun) {
  Cluster cluster({"total_steps=1000000000", "rollout.env_rebuilds=2"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto bad = cluster.StartActor("", {"SKEIN_FAULTS=env:throw@after=2000"});
  EXPECT_EQ(bad->WaitForEnd(), 70);
  EXPECT_THAT(bad->Output(), HasSubstr("environments failed more than 2 times within 10m (rollout.env_rebuilds)"));
  EXPECT_EQ(Count(bad->Output(), "it is built anew"), 2);
  const auto good = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus(TrainedAtLeast(8192)));
}

TEST(FaultRow21, ACrashStartsTheProcessAgainAndTheRunIsTheSame) {
  const FaultyTraining training;
  const Ended ended = training.Train(absl::StrCat("env:crash@at=7000,marker=", training.folder(), "/crashed"));
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(Count(ended.out, "starting again"), 1) << ended.out;
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow21, AHangIsEndedByTheStepTimeout) {
  const FaultyTraining training({"rollout.step_timeout_seconds=1"});
  const Ended ended = training.Train(absl::StrCat("env:hang@at=7000,marker=", training.folder(), "/hung"));
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(Count(ended.out, "starting again"), 1) << ended.out;
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow21, AHangNamesEnvironmentAndStepAndOthersTakeOver) {
  Cluster cluster({"total_steps=1000000000", "rollout.step_timeout_seconds=1"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto hangs = cluster.StartActor("", {"SKEIN_FAULTS=env:hang@at=3"});  // One runner: environments 0, 1, 2, 3.
  EXPECT_EQ(hangs->WaitForEnd(), 75);
  EXPECT_NE(FirstMatch(hangs->Output(),
                       "(environment \\d+ of CartPole-v1, episode 0, step 1: has taken longer than 1 s "
                       "\\(rollout.step_timeout_seconds\\))"),
            "")
      << hangs->Output();
  const auto other = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus(TrainedAtLeast(4096)));
}

TEST(FaultRow21, AFaultThatNobodyKnowsIsRefused) {
  const FaultyTraining training;
  const Ended ended = training.Train("env:melt");
  EXPECT_EQ(ended.code, 64) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("SKEIN_FAULTS: 'env:melt': want one of receipt:drop"));
}

}  // namespace
}  // namespace skein
