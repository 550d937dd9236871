// SPDX-License-Identifier: Apache-2.0
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(10);

Subprocess::Options Shell(const std::string& script) {
  Subprocess::Options options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

Subprocess::Options CapturedShell(const std::string& script) {
  Subprocess::Options options = Shell(script);
  options.capture_stdout = true;
  return options;
}

std::unique_ptr<Subprocess> Start(const Subprocess::Options& options) {
  absl::StatusOr<std::unique_ptr<Subprocess>> child = Subprocess::Spawn(options);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

TEST(Subprocess, GivesTheExitCode) {
  const auto child = Start(Shell("exit 3"));
  EXPECT_EQ(child->Wait(kPatience), 3);
  EXPECT_EQ(child->Poll(), 3);
  EXPECT_EQ(child->Wait(absl::ZeroDuration()), 3);
}

TEST(Subprocess, GivesTheSignalThatEndedIt) {
  const auto child = Start(Shell("kill -9 $$"));
  EXPECT_EQ(child->Wait(absl::InfiniteDuration()), 128 + 9);
}

TEST(Subprocess, DoesNotWriteThroughALink) {
  const std::string link = testing::TempDir() + "/skein_subprocess_link", target = link + "_target";
  std::filesystem::remove(link);
  ASSERT_TRUE(WriteFileSynced(target, "old").ok());
  std::filesystem::create_symlink(target, link);
  Subprocess::Options options = Shell("echo new");
  options.output_path = link;
  const absl::Status status = Subprocess::Spawn(options).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("skein_subprocess_link is a symbolic link"));
  EXPECT_EQ(ReadFile(target).value(), "old");
  std::filesystem::remove(link);
  std::filesystem::remove(target);
}

TEST(Subprocess, RunsUntilItIsSignalled) {
  const auto child = Start(CapturedShell("echo ready; exec sleep 1000"));
  ASSERT_TRUE(child->ReadLine(kPatience).ok());
  EXPECT_EQ(child->Poll(), std::nullopt);
  EXPECT_EQ(child->Wait(absl::Milliseconds(1)), std::nullopt);
  child->Signal(SIGTERM);
  EXPECT_EQ(child->Wait(kPatience), 128 + SIGTERM);
  child->Signal(SIGTERM);  // Of no effect.
}

TEST(Subprocess, HasDefaultSignalsWhateverTheParentBlocksAndIgnores) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  const auto child = Start(CapturedShell("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
  std::signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (const char* name : {"SigBlk:\t", "SigIgn:\t"}) {  // Bit n - 1 is signal n.
    const std::string line = child->ReadLine(kPatience).value();
    ASSERT_THAT(line, StartsWith(name));
    const uint64_t mask = std::stoull(line.substr(line.find('\t') + 1), nullptr, 16);
    for (const int number : {SIGTERM, SIGINT, SIGPIPE}) EXPECT_EQ(mask >> (number - 1) & 1, 0u) << line;
  }
}

TEST(Subprocess, LeadsAProcessGroupOfItsOwn) {
  const auto child = Start(CapturedShell("echo ready; read line"));
  ASSERT_TRUE(child->ReadLine(kPatience).ok());
  EXPECT_NE(getpgid(0), child->pid());
  EXPECT_EQ(child->Wait(kPatience), 1);  // Standard input is at its end.
}

TEST(Subprocess, DestructorKillsAndReapsTheWholeGroup) {
  auto child = Start(CapturedShell("trap '' TERM; sleep 1000 & echo $!; wait"));
  const pid_t shell = child->pid();
  const std::string grandchild = child->ReadLine(kPatience).value();
  child.reset();
  EXPECT_EQ(kill(shell, 0), -1);
  // Killed, though perhaps not reaped yet by the process that inherited it.
  const absl::StatusOr<std::string> state = ReadFile(absl::StrCat("/proc/", grandchild, "/stat"));
  EXPECT_THAT(state.value_or("gone"), testing::Not(HasSubstr(") S ")));
}

TEST(Subprocess, ReadsLinesUntilTheEnd) {
  const auto child = Start(CapturedShell("printf 'one\\n\\nthree'"));
  EXPECT_EQ(child->ReadLine(kPatience).value(), "one");
  EXPECT_EQ(child->ReadLine(kPatience).value(), "");
  EXPECT_EQ(child->ReadLine(kPatience).value(), "three");
  EXPECT_TRUE(absl::IsOutOfRange(child->ReadLine(kPatience).status()));
  EXPECT_TRUE(absl::IsOutOfRange(child->ReadLine(kPatience).status()));
}

TEST(Subprocess, ReadsAllLinesThatAreLeft) {
  auto child = Subprocess::Spawn(CapturedShell("echo one; echo; printf last"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto lines = (*child)->ReadLines(absl::Seconds(10));
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(*lines, (std::vector<std::string>{"one", "", "last"}));
  EXPECT_TRUE((*child)->ReadLines(absl::Seconds(10))->empty());
  auto slow = Subprocess::Spawn(CapturedShell("echo one; sleep 60"));
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded((*slow)->ReadLines(absl::Milliseconds(100)).status()));
  int asked = 0;
  EXPECT_TRUE(absl::IsCancelled((*slow)->ReadLines(absl::Seconds(100), [&asked] { return ++asked == 3; }).status()));
}

TEST(Subprocess, WaitingForALineEndsAtTheDeadline) {
  const auto child = Start(CapturedShell("exec sleep 1000"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(child->ReadLine(absl::Milliseconds(1)).status()));
}

TEST(Subprocess, AppendsBothOutputsToAFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/subprocess_test.", getpid());
  for (const char* script : {"echo one", "echo two >&2"}) {
    Subprocess::Options options = Shell(script);
    options.output_path = path;
    EXPECT_EQ(Start(options)->Wait(kPatience), 0);
  }
  EXPECT_EQ(ReadFile(path).value(), "one\ntwo\n");
  std::filesystem::remove(path);
}

TEST(Subprocess, LeavesOutOfTheEnvironmentWhatItIsTold) {
  setenv("SKEIN_TEST_GONE", "gone", 1);
  setenv("SKEIN_TEST_GONE_NOT", "there", 1);
  setenv("SKEIN_TEST_SET_AGAIN", "old", 1);
  Subprocess::Options options =
      CapturedShell("echo ${SKEIN_TEST_GONE-unset} $SKEIN_TEST_GONE_NOT $SKEIN_TEST_SET_AGAIN");
  options.unset_env = {"SKEIN_TEST_GONE", "SKEIN_TEST_SET_AGAIN", "SKEIN_TEST_NEVER_WAS"};
  options.extra_env = {"SKEIN_TEST_SET_AGAIN=new"};
  EXPECT_EQ(Start(options)->ReadLine(kPatience).value(), "unset there new");
}

TEST(Subprocess, AddsToAndReplacesInTheEnvironment) {
  setenv("SKEIN_TEST_KEPT", "kept", 1);
  setenv("SKEIN_TEST_REPLACED", "old", 1);
  Subprocess::Options options = CapturedShell("echo $SKEIN_TEST_KEPT $SKEIN_TEST_REPLACED $SKEIN_PARENT_PID");
  options.extra_env = {"SKEIN_TEST_REPLACED=new"};
  const auto child = Start(options);
  EXPECT_EQ(child->ReadLine(kPatience).value(), absl::StrCat("kept new ", getpid()));
}

TEST(Subprocess, InheritsNoOtherFiles) {
  const int fd = fcntl(STDERR_FILENO, F_DUPFD, 200);  // Above whatever the shell opens itself.
  ASSERT_GE(fd, 200);
  const auto child = Start(CapturedShell(absl::StrCat("ls /proc/$$/fd | grep -c '^", fd, "$'")));
  EXPECT_EQ(child->ReadLine(kPatience).value(), "0");
  close(fd);
}

TEST(Subprocess, MissingProgramIsNotFound) {
  Subprocess::Options options;
  options.argv = {"/no/such/program"};
  const absl::Status status = Subprocess::Spawn(options).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/program"));
  options.argv = {"/dev/null"};
  const absl::Status refused = Subprocess::Spawn(options).status();
  EXPECT_TRUE(absl::IsNotFound(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/dev/null: it may not be executed"));
}

TEST(Subprocess, RefusedStartsAreInternal) {
  Subprocess::Options options;
  EXPECT_TRUE(absl::IsInternal(Subprocess::Spawn(options).status()));
  options = Shell("exit 0");
  options.output_path = "/no/such/folder/log";
  EXPECT_TRUE(absl::IsInternal(Subprocess::Spawn(options).status()));
}

TEST(PythonProgram, IsTheSettingsOrElseTheVariables) {
  const char* const set = std::getenv("SKEIN_PYTHON");
  const std::string before = set == nullptr ? "" : set;
  setenv("SKEIN_PYTHON", "/venv/bin/python", 1);
  EXPECT_EQ(PythonProgram("/mine/python"), "/mine/python");
  EXPECT_EQ(PythonProgram("python3"), "/venv/bin/python");
  EXPECT_EQ(PythonProgram(""), "/venv/bin/python");
  setenv("SKEIN_PYTHON", "", 1);
  EXPECT_EQ(PythonProgram(""), "python3");
  setenv("SKEIN_PYTHON", before.c_str(), 1);
}

TEST(ProgramFolder, IsWhereThisTestLies) { EXPECT_THAT(ProgramFolder(), EndsWith("/tests")); }

}  // namespace
}  // namespace skein
