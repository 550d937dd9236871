// SPDX-License-Identifier: Apache-2.0
// Row 19: the learner has accepted a fragment, and its receipt does not arrive.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/scrape.h"

namespace skein {
namespace {

int MetricsPort(const Running& process) { return std::stoi(FirstMatch(process.Output(), "metrics=\\S+:(\\d+)")); }

// One of three sequences of faults that the seed stands for.
std::string Seeded(const std::string& fault, uint64_t which) {
  const std::string seeded = absl::StrCat(fault, ",seed=", 3 * FaultSeed() + which);
  SayChoice(seeded);
  return seeded;
}

TEST(FaultRow19, ReceiptsAreLostAndTheRunIsTheSame) {
  const FaultyTraining training;
  const std::string fault = Seeded("receipt:drop@p=0.25", 0);
  const Ended ended = training.Train(fault);
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_GT(Count(training.Log("learner"), fault + " at passage"), 3);
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow19, TheRetryOfTheSameSequenceIsAcknowledgedAndTrainedOnce) {
  // Each fifth fragment or so is accepted, and sent again because the learner does not say so at the next hello. The
  // history that Cluster checks at the end has no (actor, sequence) that was accepted twice.
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  const std::string fault = Seeded("receipt:forget@p=0.2", 1);
  cluster.StartLearner({"SKEIN_FAULTS=" + fault});
  const auto actor = cluster.StartActor();
  const int learner = MetricsPort(cluster.learner());
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse&) {
    return Scrape(learner, "skein_learner_batches_total{result=\"duplicate\"}") >= 5;
  }));
  EXPECT_GE(Scrape(MetricsPort(*actor), "skein_actor_receipts_total{result=\"duplicate\"}"), 4);  // One is on its way.
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(), 0);
  EXPECT_EQ(actor->WaitForEnd(), 0);
  const int forgotten = Count(cluster.learner().Output(), fault + " at passage");
  EXPECT_GE(forgotten, 5);
  int duplicates = 0;
  uint64_t accepted = 0;
  for (const HistoryEvent& event : cluster.History()) {
    if (event.event != "batch") continue;
    duplicates += event.Text("result") == "duplicate" ? 1 : 0;
    accepted += event.Text("result") == "accepted" ? event.Number("env_steps") : 0;
  }
  EXPECT_GE(duplicates, 5);
  EXPECT_LE(duplicates, forgotten);
  const v1::StepAccount account = Account(cluster.run_folder());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_LE(account.trained(), accepted);
  EXPECT_LE(accepted, account.collected());
}

TEST(FaultRow19, RetriesLeaveNoTraceInTheRun) {
  const FaultyTraining training;
  const std::string fault = Seeded("receipt:forget@p=0.25", 2);
  const Ended ended = training.Train(fault);
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_GT(Count(training.Log("learner"), fault + " at passage"), 3);
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

}  // namespace
}  // namespace skein
