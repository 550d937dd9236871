// SPDX-License-Identifier: Apache-2.0
// Row 38: `skein train` is killed while a child of it hangs, or its terminal is closed.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
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
using testing::Matcher;

constexpr absl::Duration kAllGone = absl::Seconds(10), kLoaded = absl::Seconds(2);

// All processes that `parent` has started, and those that these have, and that run.
std::vector<pid_t> Descendants(pid_t parent) {
  std::vector<pid_t> all;
  const std::string tasks = absl::StrCat("/proc/", parent, "/task");
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    for (const auto word :
         absl::StrSplit(ReadFile(task.path().string() + "/children").value_or(""), ' ', absl::SkipWhitespace())) {
      int pid = 0;
      if (!absl::SimpleAtoi(word, &pid)) continue;
      all.push_back(pid);
      const std::vector<pid_t> below = Descendants(pid);
      all.insert(all.end(), below.begin(), below.end());
    }
  }
  return all;
}

// Kills `skein` and expects that nothing of what it has started is left in time. `there`: how many are there before.
void KillAndExpectNoOrphans(Running* skein, const Matcher<size_t>& there = 3) {  // Coordinator, learner, actor.
  const std::vector<pid_t> descendants = Descendants(skein->pid());
  EXPECT_THAT(descendants.size(), there);
  skein->Kill();
  for (const pid_t one : descendants) {
    EXPECT_TRUE(WaitUntil([&] { return kill(one, 0) != 0; }, kAllGone + kLoaded)) << one;
    kill(one, SIGKILL);
  }
}

// A program that hears nothing: "exec:PATH". It starts another one.
std::string DeafProgram(const FaultyTraining& training) {
  const std::string path = training.folder() + "/deaf";
  EXPECT_TRUE(WriteFileSynced(path, "#!/bin/sh\ntrap '' TERM HUP\nsleep 300\n").ok());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return "exec:" + path;
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

TEST(FaultRow38, ADeafProgramOfEnvironmentsDoesNotOutliveAKilledParent) {
  const FaultyTraining training;
  const auto skein = training.Start("", {"--set", "env.id=" + DeafProgram(training)});
  // The program, its sleep, and the shell that guards it.
  ASSERT_TRUE(WaitUntil([&] { return Descendants(skein->pid()).size() == 3; }, absl::Minutes(1)));
  KillAndExpectNoOrphans(skein.get());
}

TEST(FaultRow38, ADeafCallbackDoesNotOutliveAKilledParent) {
  const FaultyTraining training;
  const auto skein = training.Start("", {"--callbacks", DeafProgram(training)});
  // And coordinator, learner, actor.
  ASSERT_TRUE(WaitUntil([&] { return Descendants(skein->pid()).size() == 6; }, absl::Minutes(1)));
  KillAndExpectNoOrphans(skein.get(), 6);
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
