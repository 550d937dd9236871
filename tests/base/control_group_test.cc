// SPDX-License-Identifier: Apache-2.0
#include "base/process/control_group.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

constexpr uint64_t kMiB = 1 << 20;

ResourceShare Share(double cpus, uint64_t memory_bytes) {
  ResourceShare share;
  share.cpus = cpus;
  share.memory_bytes = memory_bytes;
  return share;
}

std::unique_ptr<Subprocess> StartShell(const std::string& script) {
  auto child = Subprocess::Spawn({.argv = {"/bin/sh", "-c", script}});
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

// User and system time of a process, from /proc/PID/stat: fields 14 and 15, of which the first two end at ')'.
double CpuSeconds(pid_t pid) {
  const std::string text = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  double user = 0, system = 0;
  EXPECT_TRUE(absl::SimpleAtod(fields.at(11), &user) && absl::SimpleAtod(fields.at(12), &system)) << text;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

TEST(ControlGroups, WritesTheFilesOfVersion2) {
  unsetenv("SKEIN_CONTROL_GROUP");
  const ScratchFolder mount;
  mount.Write("cgroup.controllers", "cpu io memory pids\n");
  mount.Write("user/cgroup.controllers", "cpu memory\n");
  mount.Write("user/cgroup.subtree_control", "memory cpu\n");
  ControlGroups groups(mount.path(), "0::/user\n");
  const auto group = groups.Make("one", Share(0.5, 64 * kMiB));
  ASSERT_NE(group, nullptr);
  EXPECT_TRUE(group->limits_cpu() && group->limits_memory());
  EXPECT_EQ(mount.Read("user/one/cpu.max"), "50000 100000");
  EXPECT_EQ(mount.Read("user/one/cpu.weight"), "10000");
  EXPECT_EQ(mount.Read("user/one/memory.max"), "67108864");
  EXPECT_EQ(mount.Read("user/one/memory.swap.max"), "0");
  ASSERT_TRUE(group->Add(123).ok());
  EXPECT_EQ(mount.Read("user/one/cgroup.procs"), "123");
  EXPECT_FALSE(group->RanOutOfMemory());
  mount.Write("user/one/memory.events", "low 0\noom 1\noom_kill 0\n");
  EXPECT_FALSE(group->RanOutOfMemory());
  mount.Write("user/one/memory.events", "low 0\noom 1\noom_kill 1\n");
  EXPECT_TRUE(group->RanOutOfMemory());
  // Those that this process starts and that make groups too make them beside this one.
  EXPECT_EQ(ControlGroups(mount.path(), "0::/elsewhere\n").Make("one", Share(1, kMiB)), nullptr);  // It is there.
  EXPECT_NE(ControlGroups(mount.path(), "0::/elsewhere\n").Make("two", Share(1, kMiB)), nullptr);
  EXPECT_EQ(mount.Read("user/two/cpu.max"), "100000 100000");
  unsetenv("SKEIN_CONTROL_GROUP");
}

TEST(ControlGroups, EnablesControllersOfVersion2) {
  const ScratchFolder mount;
  mount.Write("cgroup.controllers", "cpu memory\n");
  mount.Write("cgroup.subtree_control", "");
  const auto group = ControlGroups(mount.path(), "0::/\n").Make("one", Share(1.5, kMiB));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(mount.Read("cgroup.subtree_control"), "+memory");  // A folder keeps only the last; the kernel adds them up.
  EXPECT_EQ(mount.Read("one/cpu.max"), "150000 100000");
  unsetenv("SKEIN_CONTROL_GROUP");
}

TEST(ControlGroups, WritesTheFilesOfVersion1) {
  const ScratchFolder mount;
  mount.Write("cpu,cpuacct/job/cgroup.procs", "");
  mount.Write("memory/cgroup.procs", "");  // Of a container: its own group is the mount.
  ControlGroups groups(mount.path(), "9:memory:/docker/1\n4:cpu,cpuacct:/job\n0::/\n");
  const auto group = groups.Make("one", Share(0.25, 64 * kMiB));
  ASSERT_NE(group, nullptr);
  EXPECT_TRUE(group->limits_cpu() && group->limits_memory());
  EXPECT_EQ(mount.Read("cpu,cpuacct/job/one/cpu.cfs_quota_us"), "25000");
  EXPECT_EQ(mount.Read("cpu,cpuacct/job/one/cpu.cfs_period_us"), "100000");
  EXPECT_EQ(mount.Read("cpu,cpuacct/job/one/cpu.shares"), "102400");
  EXPECT_EQ(mount.Read("memory/one/memory.limit_in_bytes"), "67108864");
  ASSERT_TRUE(group->Add(7).ok());
  EXPECT_EQ(mount.Read("cpu,cpuacct/job/one/cgroup.procs"), "7");
  EXPECT_EQ(mount.Read("memory/one/cgroup.procs"), "7");
}

TEST(ControlGroups, LimitsWhatTheKernelLetsUs) {
  const ScratchFolder mount;
  mount.Write("memory/cgroup.procs", "");
  ControlGroups groups(mount.path(), "9:memory:/\n");
  const auto group = groups.Make("one", Share(0.25, 64 * kMiB));
  ASSERT_NE(group, nullptr);
  EXPECT_FALSE(group->limits_cpu());
  EXPECT_TRUE(group->limits_memory());
  EXPECT_EQ(groups.Make("two", ResourceShare{.cpus = 1}), nullptr);
  EXPECT_EQ(ControlGroups("/nowhere", "0::/\n").Make("one", Share(1, kMiB)), nullptr);
  EXPECT_EQ(ControlGroups(mount.path(), "not a line").Make("one", Share(1, kMiB)), nullptr);
}

TEST(ControlGroups, TellsTheLimitsOfThisProcess) {
  const ScratchFolder mount;
  mount.Write("cgroup.controllers", "cpu memory\n");
  mount.Write("cpu.max", "150000 100000\n");
  mount.Write("memory.max", "1073741824\n");
  EXPECT_EQ(ControlGroups(mount.path(), "0::/\n").CpuLimit(), 1.5);
  EXPECT_EQ(ControlGroups(mount.path(), "0::/\n").MemoryLimit(), uint64_t{1} << 30);
  mount.Write("cpu.max", "max 100000\n");
  mount.Write("memory.max", "max\n");
  EXPECT_EQ(ControlGroups(mount.path(), "0::/\n").CpuLimit(), std::nullopt);
  EXPECT_EQ(ControlGroups(mount.path(), "0::/\n").MemoryLimit(), std::nullopt);
}

TEST(ControlGroups, TheKernelHoldsAProcessToItsCpus) {
  const auto group =
      ControlGroups::OfThisProcess().Make(absl::StrCat("skein-", getpid(), "-cpu"), Share(0.25, 64 * kMiB));
  if (group == nullptr || !group->limits_cpu()) GTEST_SKIP() << "this process may not limit CPU by control groups";
  const auto child = StartShell("while :; do :; done");
  ASSERT_TRUE(group->Add(child->pid()).ok());
  absl::SleepFor(absl::Milliseconds(200));  // So that the first period is over.
  const double before = CpuSeconds(child->pid());
  const absl::Duration begin = MonotonicNow();
  absl::SleepFor(absl::Seconds(1));
  const double share = (CpuSeconds(child->pid()) - before) / absl::ToDoubleSeconds(MonotonicNow() - begin);
  // A period of 0.1 s more or less, and the clock's ticks: 0.25 +- 0.025 +- 0.01. Less on a machine that is busy.
  EXPECT_LT(share, 0.25 + 0.05);
  EXPECT_GT(share, 0.01);
}

// Four rivals on each CPU that want all of it would leave it a fifth of one.
TEST(ControlGroups, AProcessGetsItsShareBesideRivals) {
  const auto group =
      ControlGroups::OfThisProcess().Make(absl::StrCat("skein-", getpid(), "-rivals"), Share(0.75, 64 * kMiB));
  if (group == nullptr || !group->limits_cpu()) GTEST_SKIP() << "this process may not limit CPU by control groups";
  std::vector<std::unique_ptr<Subprocess>> rivals;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
    rivals.push_back(StartShell("while :; do :; done"));
  }
  const auto child = StartShell("while :; do :; done");
  ASSERT_TRUE(group->Add(child->pid()).ok());
  absl::SleepFor(absl::Milliseconds(200));
  const double before = CpuSeconds(child->pid());
  const absl::Duration begin = MonotonicNow();
  absl::SleepFor(absl::Seconds(1));
  const double share = (CpuSeconds(child->pid()) - before) / absl::ToDoubleSeconds(MonotonicNow() - begin);
  for (const auto& rival : rivals) rival->Signal(SIGKILL);
  EXPECT_GT(share, 0.5);  // Within 5 % where nothing else is at work: docs/resources.md.
  EXPECT_LT(share, 0.85);
}

TEST(ControlGroups, TheKernelHoldsAProcessToItsMemory) {
  const auto group =
      ControlGroups::OfThisProcess().Make(absl::StrCat("skein-", getpid(), "-memory"), Share(1, 64 * kMiB));
  if (group == nullptr || !group->limits_memory())
    GTEST_SKIP() << "this process may not limit memory by control groups";
  const auto child = StartShell("sleep 0.2; exec perl -e '$x = \"x\" x (300 << 20); sleep 100'");
  ASSERT_TRUE(group->Add(child->pid()).ok());
  EXPECT_EQ(child->Wait(absl::Seconds(60)), 128 + SIGKILL);
  EXPECT_TRUE(group->RanOutOfMemory());
}

}  // namespace
}  // namespace skein
