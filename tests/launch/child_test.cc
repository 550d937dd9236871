// SPDX-License-Identifier: Apache-2.0
#include "launch/child.h"

#include <csignal>

#include "base/process/exit_code.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::unique_ptr<Child> StartScript(const ScratchFolder& folder, const std::string& body) {
  auto child = Child::Start(
      {.name = "learner", .program = folder.WriteScript("script", body), .log_path = folder.path() + "/learner.log"});
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

TEST(Child, AfterAnOrderlyExitIsDescribedByTheLastLineOfItsLog) {
  const ScratchFolder folder;
  const auto child = StartScript(folder, "echo noise; echo 'skein-learner: port 7 is in use' >&2; exit 69");
  EXPECT_EQ(child->process().Wait(absl::Seconds(10)), 69);
  EXPECT_EQ(child->DescribeExit(69),
            "learner ended with code 69: skein-learner: port 7 is in use (log: " + folder.path() + "/learner.log)");
}

TEST(Child, ATornLastLineIsNoReason) {
  const ScratchFolder folder;
  const auto child = StartScript(folder, "echo noise; printf '21:21:41.174 error [skein-learner] c'; exit 74");
  EXPECT_EQ(child->process().Wait(absl::Seconds(10)), 74);
  EXPECT_EQ(child->DescribeExit(74),
            "learner ended with code 74: the disk is full, or may not be written; its log breaks off before the reason "
            "(log: " +
                folder.path() + "/learner.log)");
}

TEST(Child, AfterACrashIsDescribedByTheLastLinesOfThisSession) {
  const ScratchFolder folder;
  folder.Write("learner.log", "of a session before\n");
  const auto child = StartScript(folder, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; kill -KILL $$");
  EXPECT_EQ(child->process().Wait(absl::Seconds(10)), 137);
  const std::string text = child->DescribeExit(137);
  EXPECT_THAT(text, StartsWith("learner was ended by signal 9"));
  EXPECT_THAT(text, EndsWith("\n  line 12"));
  // The last ten: 3 to 12.
  EXPECT_THAT(text, AllOf(HasSubstr("\n  line 3\n"), Not(HasSubstr("line 2\n")), Not(HasSubstr("session before"))));
}

TEST(Child, ThatNeededMoreThanItsShareIsDescribedByTheShare) {
  const ScratchFolder folder;
  ShareEnforcer enforcer;
  ResourceShare share;
  share.setting = "resources.actor";
  share.memory_bytes = uint64_t{64} << 20;
  const auto child = Child::Start(
      {.name = "actor-1",
       .program = folder.WriteScript("script", "sleep 0.3; exec perl -e '$x = \"x\" x (300 << 20); sleep 100'"),
       .log_path = folder.path() + "/actor-1.log",
       .share = share,
       .enforcer = &enforcer});
  ASSERT_TRUE(child.ok()) << child.status();
  if ((*child)->held_by() != "memory by a control group") GTEST_SKIP() << (*child)->held_by();
  EXPECT_EQ((*child)->process().Wait(absl::Seconds(60)), 137);
  EXPECT_EQ((*child)->DescribeExit(137),
            "actor-1 was killed: it needed more memory than its share of 64 MiB; raise resources.actor.memory (log: " +
                folder.path() + "/actor-1.log)");
}

TEST(Child, ThatSaidNothingIsDescribedAllTheSame) {
  const ScratchFolder folder;
  const auto child = StartScript(folder, "exit 1");
  EXPECT_EQ(child->process().Wait(absl::Seconds(10)), 1);
  EXPECT_THAT(child->DescribeExit(1), HasSubstr("ended with code 1 without a message"));
}

TEST(Child, ExitStatusKeepsTheCodesOfOurOwnPrograms) {
  const ScratchFolder folder;
  const auto child = StartScript(folder, "exit 0");
  for (int code : {64, 65, 69, 70, 74, 75}) EXPECT_EQ(ExitCodeOf(child->ExitStatus(code)), code);
  EXPECT_EQ(ExitCodeOf(child->ExitStatus(139)), kExitInternal);
}

TEST(Child, StopReturnsItsCodeOrKillsIt) {
  const ScratchFolder folder;
  const auto polite = StartScript(folder, "trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done");
  while (folder.Read("learner.log").empty()) polite->process().Wait(absl::Milliseconds(1));
  EXPECT_EQ(polite->Stop(absl::Seconds(10)), 3);
  EXPECT_EQ(polite->Stop(absl::Seconds(10)), 3);  // Again: nothing happens.

  folder.Write("learner.log", "");
  const auto deaf = StartScript(folder, "trap '' TERM; echo up; while :; do sleep 0.01; done");
  while (folder.Read("learner.log").empty()) deaf->process().Wait(absl::Milliseconds(1));
  EXPECT_EQ(deaf->Stop(absl::Milliseconds(20)), 128 + SIGKILL);
}

TEST(Child, HasItsOwnPlaceAmongRanksNotItsParents) {
  const ScratchFolder folder;
  setenv("RANK", "3", 1);
  setenv("SLURM_PROCID", "3", 1);
  auto child =
      Child::Start({.name = "learner-1",
                    .program = folder.WriteScript("script", "echo ${RANK-none} ${SLURM_PROCID-none} $LOCAL_RANK"),
                    .log_path = folder.path() + "/log",
                    .extra_env = {"LOCAL_RANK=1"}});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ((*child)->process().Wait(absl::Seconds(10)), 0);
  EXPECT_EQ(folder.Read("log"), "none none 1\n");
  unsetenv("RANK");
  unsetenv("SLURM_PROCID");
}

TEST(FindProgram, SaysWhatToDoWhereThereIsNone) {
  const ScratchFolder folder;
  folder.WriteScript("skein-actor", "");
  EXPECT_EQ(FindProgram(folder.path(), "skein-actor").value(), folder.path() + "/skein-actor");
  const auto status = FindProgram(folder.path(), "skein-learner").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("make build"));
}

TEST(ThreadEnvironment, LeavesWhatTheUserHasSet) {
  unsetenv("OMP_NUM_THREADS");
  unsetenv("OMP_WAIT_POLICY");
  setenv("OPENBLAS_NUM_THREADS", "7", 1);
  EXPECT_THAT(ThreadEnvironment(2), testing::ElementsAre("OMP_NUM_THREADS=2", "OMP_WAIT_POLICY=passive"));
  setenv("OMP_NUM_THREADS", "7", 1);
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_THAT(ThreadEnvironment(2), IsEmpty());
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("OMP_NUM_THREADS");
  unsetenv("OPENBLAS_NUM_THREADS");
}

}  // namespace
}  // namespace skein
