// SPDX-License-Identifier: Apache-2.0
// Row 38: `skein train` is killed while a child of it hangs, or its terminal is closed.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kAllGone = absl::Seconds(10), kLoaded = absl::Seconds(2);

// All processes that `parent` has started and that run.
std::vector<pid_t> Children(pid_t parent) {
  std::vector<pid_t> children;
  const std::string path = absl::StrCat("/proc/", parent, "/task/", parent, "/children");
  for (const auto word : absl::StrSplit(ReadFile(path).value_or(""), ' ', absl::SkipWhitespace())) {
    int pid = 0;
    if (absl::SimpleAtoi(word, &pid)) children.push_back(pid);
  }
  return children;
}

// Kills `skein` and expects that none of its children is left in time.
void KillAndExpectNoOrphans(Running* skein) {
  const std::vector<pid_t> children = Children(skein->pid());
  EXPECT_EQ(children.size(), 3u);  // Coordinator, learner, actor.
  skein->Kill();
  for (const pid_t child : children) {
    EXPECT_TRUE(WaitUntil([&] { return kill(child, 0) != 0; }, kAllGone + kLoaded)) << child;
    kill(child, SIGKILL);
  }
}

TEST(FaultRow38, AnActorWhoseEnvironmentHangsDoesNotOutliveAKilledParent) {
  const FaultyTraining training;
  const std::string hung = training.folder() + "/hung";
  const auto skein = training.Start(absl::StrCat("env:hang@at=7000,marker=", hung));
  ASSERT_TRUE(WaitUntil([&] { return access(hung.c_str(), F_OK) == 0; }, absl::Minutes(1)));
  KillAndExpectNoOrphans(skein.get());
  const Ended ended = training.Train("");  // Waits for nobody.
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow38, ALearnerThatHangsInOpenDoesNotOutliveAKilledParent) {
  const FaultyTraining training;
  const std::string hung = training.folder() + "/hung";
  const auto skein = training.Start("", {},
                                    {std::string("LD_PRELOAD=") + HANGING_OPEN,
                                     "SKEIN_HANGING_OPEN=optimizer.safetensors", "SKEIN_HANGING_MARKER=" + hung});
  ASSERT_TRUE(WaitUntil([&] { return access(hung.c_str(), F_OK) == 0; }, absl::Minutes(1)));
  KillAndExpectNoOrphans(skein.get());
  // Everything was killed within a checkpoint.
  const Ended ended = training.Train("");
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(training.FinishedDigest(), FaultyTraining::Undisturbed());
}

TEST(FaultRow38, AClosedTerminalIsAnOrderlyEnd) {
  const FaultyTraining training({}, 100'000);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  skein->Signal(SIGHUP);
  skein->Signal(SIGHUP);  // Of the kernel and of the shell.
  EXPECT_EQ(skein->WaitForEnd(), 0);
  EXPECT_THAT(skein->Output(), AllOf(HasSubstr("stopping: the learner writes a checkpoint"),
                                     HasSubstr("the same command goes on from the checkpoint")));
  const v1::StepAccount account = Account(training.run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.pending(), 0u);
}

}  // namespace
}  // namespace skein
