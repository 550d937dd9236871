// SPDX-License-Identifier: Apache-2.0
// Rows 35 and 36: a process of `skein train` is stopped (SIGSTOP) for good, the learner or the coordinator.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// H is 0.2 s, L 2 s.
const std::vector<std::string> kSettings = {"coordinator.heartbeat_seconds=0.2", "coordinator.lease_seconds=2",
                                            "checkpoint.interval_steps=20480"};
constexpr char kCoordinator[] = "skein-coordinat";  // As much of a program's name as the system keeps.

pid_t StopChild(const Running& skein, const char* name) {
  const auto child = FindChild(skein.pid(), name);
  EXPECT_TRUE(child);
  if (!child) return 0;
  kill(*child, SIGSTOP);
  return *child;
}

pid_t StopCoordinator(const Running& skein) { return StopChild(skein, kCoordinator); }

// The last report is what is on the disk: target reached, account, checkpoint and digest.
void ExpectTrueReport(const FaultyTraining& training, uint64_t steps, const std::string& output) {
  const v1::StepAccount account = Account(training.run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), steps);
  EXPECT_THAT(output, AllOf(HasSubstr(absl::StrCat("checkpoint: ", NewestCheckpoint(training.run()), " (digest ",
                                                   Digest(training.run()), ")")),
                            Not(HasSubstr("stopped before"))));
  EXPECT_EQ(Count(output, "step account: collected"), 1);
}

TEST(FaultRow35, ALearnerThatIsStoppedForGoodIsStartedAgainAndTheRunIsTheSame) {
  const FaultyTraining undisturbed(kSettings, 200), training(kSettings, 200);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  const pid_t stopped = StopChild(*skein, "skein-learner");
  skein->WaitForOutput("the learner hangs: process ([0-9]+) has not been heard of");
  skein->WaitForOutput("starting (again): learner was ended by signal 9");
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0) << skein->Output();
  EXPECT_NE(kill(stopped, 0), 0);
  ExpectTrueReport(training, 200 * 1024, skein->Output());
  EXPECT_EQ(undisturbed.Train("").code, 0);
  EXPECT_EQ(training.FinishedDigest(), undisturbed.FinishedDigest());
}

TEST(FaultRow36, StoppedInTheMiddleItIsReportedAndStartedAgainAndTheRunIsTheSame) {
  const FaultyTraining training(kSettings, 400);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  const pid_t stopped = StopCoordinator(*skein);
  skein->WaitForOutput("the coordinator has not answered for (\\S+); training goes on without it");
  const std::string before = NewestCheckpoint(training.run());
  skein->WaitForOutput("starting the coordinator (again), training goes on: the coordinator has not answered");
  ASSERT_TRUE(WaitUntil([&] { return NewestCheckpoint(training.run()) > before; }, absl::Minutes(1)));
  skein->WaitForOutput("(the coordinator answers again|finished)");
  EXPECT_NE(kill(stopped, 0), 0);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0);
  ExpectTrueReport(training, 400 * 1024, skein->Output());
}

TEST(FaultRow36, StoppedBeforeAnyoneHasJoinedTheRunBeginsWithItsSuccessor) {
  const FaultyTraining training(kSettings);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return FindChild(skein->pid(), "skein-learner").has_value(); }, absl::Minutes(1)));
  StopCoordinator(*skein);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0) << skein->Output();
  EXPECT_THAT(skein->Output(), HasSubstr("starting the coordinator again"));
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
  ExpectTrueReport(training, 20 * 1024, skein->Output());
}

TEST(FaultRow36, StoppedAtTheEndTheLastReportIsNotOfAnOldStatus) {
  std::vector<std::string> settings = kSettings;
  settings.push_back("eval.episodes=4");
  const FaultyTraining training(settings, 100, /*evaluates=*/true);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  StopCoordinator(*skein);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0);
  ExpectTrueReport(training, 100 * 1024, skein->Output());
  // The policy that is evaluated is that of the last checkpoint.
  EXPECT_EQ(Count(skein->Output(), "\nevaluation: "), 1) << skein->Output();
  EXPECT_THAT(ReadFile(training.run() + "/eval.json").value_or("none"),
              AllOf(HasSubstr("\"episodes\":4"), HasSubstr(Digest(training.run()))));
}

}  // namespace
}  // namespace skein
