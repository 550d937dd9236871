// SPDX-License-Identifier: Apache-2.0
#include "base/process/share_enforcer.h"

#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <new>

#include "base/process/subprocess.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

// Of a machine that gives no control groups.
ShareEnforcer WithoutGroups() { return ShareEnforcer(ControlGroups("/nowhere", "")); }

std::unique_ptr<Subprocess> StartShell(const std::string& script) {
  auto child = Subprocess::Spawn({.argv = {"/bin/sh", "-c", script}, .capture_stdout = true});
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

int CpusOf(pid_t pid) {
  cpu_set_t set;
  return sched_getaffinity(pid, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

TEST(ShareEnforcer, WithoutControlGroupsLimitsAffinityPriorityAndData) {
  const auto child = StartShell("sleep 100");
  ShareEnforcer enforcer = WithoutGroups();
  ResourceShare share;
  share.cpus = 0.25;
  share.memory_bytes = 100 * kMiB;
  const auto held = enforcer.Hold(child->pid(), "actor-1", share);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ((*held)->how(), "CPU by affinity and priority, memory by a limit of the data segment");
  EXPECT_EQ(CpusOf(child->pid()), 1);
  // A quarter beside one rival is a third of its weight: log(3) / log(1.25) = 4.9.
  EXPECT_EQ(getpriority(PRIO_PROCESS, child->pid()), 5);
  rlimit limit = {};
  ASSERT_EQ(prlimit(child->pid(), RLIMIT_DATA, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, 100 * kMiB);
  EXPECT_EQ((*held)->DescribeKill(), "");
}

TEST(ShareEnforcer, GivesProcessesDifferentCpusWhereThereAreEnough) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one CPU";
  ShareEnforcer enforcer = WithoutGroups();
  ResourceShare share;
  share.cpus = 1;
  const auto one = StartShell("sleep 100"), other = StartShell("sleep 100");
  const auto held_one = enforcer.Hold(one->pid(), "one", share),
             held_other = enforcer.Hold(other->pid(), "other", share);
  ASSERT_TRUE(held_one.ok() && held_other.ok());
  cpu_set_t cpus_one, cpus_other, both;
  ASSERT_EQ(sched_getaffinity(one->pid(), sizeof(cpus_one), &cpus_one), 0);
  ASSERT_EQ(sched_getaffinity(other->pid(), sizeof(cpus_other), &cpus_other), 0);
  CPU_AND(&both, &cpus_one, &cpus_other);
  EXPECT_EQ(CPU_COUNT(&both), 0);
  EXPECT_EQ(getpriority(PRIO_PROCESS, one->pid()), getpriority(PRIO_PROCESS, 0));
}

TEST(ShareEnforcer, MemoryBeyondTheDataLimitCannotBeHad) {
  const auto child = StartShell("read line </dev/null; sleep 0.3; exec perl -e '$x = \"x\" x (300 << 20)' 2>&1");
  ShareEnforcer enforcer = WithoutGroups();
  ResourceShare share;
  share.memory_bytes = 64 * kMiB;
  ASSERT_TRUE(enforcer.Hold(child->pid(), "actor-1", share).ok());
  const auto line = child->ReadLine(absl::Seconds(60));
  EXPECT_THAT(line.value_or(""), HasSubstr("Out of memory"));
  EXPECT_NE(child->Wait(absl::Seconds(60)).value_or(0), 0);
}

TEST(ShareEnforcer, ByControlGroupsAKillIsExplained) {
  ShareEnforcer enforcer;
  ResourceShare share;
  share.setting = "resources.actor";
  share.memory_bytes = 64 * kMiB;
  const auto child = StartShell("sleep 0.3; exec perl -e '$x = \"x\" x (300 << 20); sleep 100'");
  const auto held = enforcer.Hold(child->pid(), "actor-1", share);
  ASSERT_TRUE(held.ok()) << held.status();
  if ((*held)->how() != "memory by a control group") GTEST_SKIP() << (*held)->how();
  EXPECT_EQ(child->Wait(absl::Seconds(60)), 128 + SIGKILL);
  EXPECT_EQ((*held)->DescribeKill(), "it needed more memory than its share of 64 MiB; raise resources.actor.memory");
}

TEST(GpuEnvironment, HidesGpusOrSharesThem) {
  EXPECT_THAT(GpuEnvironment({}), IsEmpty());
  EXPECT_THAT(GpuEnvironment({.gpus = 0}), ElementsAre("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(GpuEnvironment({.gpus = 0.25}), ElementsAre("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"));
  EXPECT_THAT(GpuEnvironment({.gpus = 0.001}), ElementsAre("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1"));
  EXPECT_THAT(GpuEnvironment({.gpus = 1}), IsEmpty());
}

TEST(GpuEnvironment, SharesTheirMemoryWhereItIsKnown) {
  constexpr uint64_t kGpu = uint64_t{81559} << 20;
  // A quarter of 81,559 MiB, rounded down.
  EXPECT_THAT(GpuEnvironment({.gpus = 0.25}, {kGpu}),
              ElementsAre("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20389M"));
  // Of whichever GPU the process takes.
  EXPECT_THAT(
      GpuEnvironment({.gpus = 0.5}, {kGpu, kGpu}),
      ElementsAre("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=40779M,1=40779M"));
  EXPECT_THAT(GpuEnvironment({.gpus = 0}, {kGpu}), ElementsAre("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(GpuEnvironment({.gpus = 1}, {kGpu}), IsEmpty());
}

TEST(EndWhenOutOfMemoryDeathTest, EndsWithOneLine) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ResourceShare share;
  share.setting = "resources.actor";
  share.memory_bytes = 2048 * kMiB;
  const auto exhaust = [&share] {
    EndWhenOutOfMemory("skein-actor", share);
    rlimit limit = {512 * kMiB, 512 * kMiB};
    setrlimit(RLIMIT_DATA, &limit);
    std::vector<std::unique_ptr<char[]>> all;
    while (true) all.emplace_back(new char[64 * kMiB]);
  };
  EXPECT_EXIT(
      exhaust(), testing::ExitedWithCode(74),
      "^skein-actor: out of memory: more than its share of 2048 MiB is needed; raise resources.actor.memory\n$");
}

}  // namespace
}  // namespace skein
