// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_guard.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "gtest/gtest.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

Subprocess::Options Foreign(const std::string& script) {
  Subprocess::Options options;
  options.argv = {"/bin/sh", "-c", script};
  options.capture_stdout = true;
  options.foreign = true;
  return options;
}

// Starts a foreign program that prints process ids, which are written to `ids`, and is killed.
[[noreturn]] void StartAndBeKilled(const std::string& script, int ids) {
  const auto child = Subprocess::Spawn(Foreign(script));
  const std::string line = child.ok() ? (*child)->ReadLine(absl::Seconds(10)).value_or("") : "";
  (void)!write(ids, line.data(), line.size());
  raise(SIGKILL);
  _exit(1);
}

// How the process `pid`, which this one has inherited, ended.
int EndOf(pid_t pid) {
  int status = 0;
  EXPECT_TRUE(WaitUntil([&] { return waitpid(pid, &status, WNOHANG) == pid; }));
  return status;
}

TEST(ProcessGuard, KillsAllOfAForeignProgramOnceItsParentHasGone) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ids[2];
  ASSERT_EQ(pipe(ids), 0);
  const pid_t parent = fork();
  if (parent == 0) StartAndBeKilled("trap '' TERM HUP; sleep 300 & echo $$ $!; wait; sleep 300", ids[1]);
  close(ids[1]);
  ASSERT_TRUE(WIFSIGNALED(EndOf(parent)));
  char text[64] = {};
  ASSERT_GT(read(ids[0], text, sizeof(text) - 1), 0);
  close(ids[0]);
  int shell = 0, sleeper = 0;
  ASSERT_EQ(sscanf(text, "%d %d", &shell, &sleeper), 2) << text;
  for (const int pid : {shell, sleeper}) {
    const int status = EndOf(pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  EXPECT_TRUE(WaitUntil([] { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }));  // Nor the guard.
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ForeignProgram, TakesWithItWhatItHasStarted) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const auto child = Subprocess::Spawn(Foreign("trap '' TERM HUP; sleep 300 & echo $!; exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  const std::string sleeper = (*child)->ReadLine(absl::Seconds(10)).value_or("");
  EXPECT_EQ((*child)->Wait(absl::Seconds(10)), 3);
  const int status = EndOf(std::stoi(sleeper));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ProcessGuard, GoesWithWhatItGuards) {
  const auto child = Subprocess::Spawn(Foreign("exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ((*child)->Wait(absl::Seconds(10)), 3);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace skein
