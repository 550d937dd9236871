// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/proc_text.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr char kStat[] =
    "cpu  100 20 30 400 50 6 7 8 9 10\n"
    "cpu0 60 10 20 200 25 3 4 4 9 10\n"
    "cpu2 40 10 10 200 25 3 3 4 0 0\n"
    "intr 12345\n"
    "ctxt 1\n";

TEST(ProcText, AddsUpTicksWithoutIdleAndWithoutCountingGuestsTwice) {
  const NodeCpuTimes times = ParseCpuTimes(kStat);
  EXPECT_EQ(times.all.total, 621u);  // 100 + 20 + 30 + 400 + 50 + 6 + 7 + 8.
  EXPECT_EQ(times.all.busy, 171u);   // Less 400 idle and 50 waiting for a disk.
  ASSERT_EQ(times.core.size(), 3u);
  EXPECT_EQ(times.core[0].busy, 101u);  // 60 + 10 + 20 + 3 + 4 + 4.
  EXPECT_EQ(times.core[1].total, 0u);   // Offline.
  EXPECT_EQ(times.core[2].total, 295u);
}

TEST(ProcText, BusyRatioIsTheShareBetweenTwoReadings) {
  EXPECT_DOUBLE_EQ(BusyRatio({10, 100}, {40, 200}), 0.3);
  EXPECT_DOUBLE_EQ(BusyRatio({10, 100}, {10, 100}), 0);
  EXPECT_DOUBLE_EQ(BusyRatio({10, 100}, {5, 90}), 0);  // Some counters step back when a core comes back.
  EXPECT_DOUBLE_EQ(BusyRatio({0, 0}, {100, 90}), 1);
}

TEST(ProcText, ReadsMemoryInBytes) {
  const char text[] = "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8000 kB\n";
  EXPECT_EQ(ParseMemInfoBytes(text, "MemTotal"), 16000u * 1024);
  EXPECT_EQ(ParseMemInfoBytes(text, "MemAvailable"), 8000u * 1024);
  EXPECT_EQ(ParseMemInfoBytes(text, "Mem"), 0u);
}

TEST(ProcText, FindsTheThreadsBehindAnyProgramName) {
  EXPECT_EQ(ParseThreads("42 (a ) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 17 0 12345 1 2\n"), 17u);
}

TEST(ProcText, ReadsWhenAProcessStartedAndTheNodeBooted) {
  EXPECT_EQ(ParseStartTicks("42 (a ) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 17 0 12345 1 2\n"), 12345u);
  EXPECT_EQ(ParseBootTime("cpu  1 2 3 4\nctxt 5\nbtime 1700000000\nprocesses 6\n"), 1700000000u);
}

TEST(ProcText, AddsUpTheProcessorTimeOfAProcess) {
  EXPECT_EQ(ParseRunTicks("42 (a ) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 17 0 12345 1 2\n"), 11u);
}

TEST(ProcText, ReadsResidentPages) { EXPECT_EQ(ParseResidentPages("1000 250 30 4 0 5 0\n"), 250u); }

TEST(ProcText, NonsenseCountsAsZero) {
  EXPECT_TRUE(ParseCpuTimes("").core.empty());
  EXPECT_EQ(ParseCpuTimes("cpu x y\ncpu99999999999 1 2 3 4\n").all.total, 0u);
  EXPECT_EQ(ParseMemInfoBytes("MemTotal:", "MemTotal"), 0u);
  EXPECT_EQ(ParseThreads("nothing"), 0u);
  EXPECT_EQ(ParseThreads("1 (a) S"), 0u);
  EXPECT_EQ(ParseStartTicks("1 (a) S"), 0u);
  EXPECT_EQ(ParseBootTime("btime\n"), 0u);
  EXPECT_EQ(ParseResidentPages(""), 0u);
}

}  // namespace
}  // namespace skein
