// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/process_usage.h"

#include <memory>
#include <string>

#include "base/process/subprocess.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

std::unique_ptr<Subprocess> Shell(const std::string& script) {
  Subprocess::Options options;
  options.argv = {"/bin/sh", "-c", script};
  options.capture_stdout = true;
  auto child = Subprocess::Spawn(options);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

constexpr char kWork[] = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

TEST(ProcessUsage, CountsDescendantsThatRunAndThatHaveEnded) {
  // A grandchild that has ended, and one that holds 50 MB and waits.
  const std::string holds = "perl -e '$x = \"x\" x (50 << 20); $| = 1; print \"ready\\n\"; sleep 100'";
  const auto child = Shell("( " + std::string(kWork) + " ); ( " + holds + "; true ); true");
  EXPECT_EQ(child->ReadLine(absl::Seconds(60)).value_or(""), "ready");
  const ProcessUsage usage = UsageOfTrees({child->pid()});
  EXPECT_GT(usage.cpu_seconds, 0.02);
  EXPECT_GT(usage.memory_bytes, uint64_t{50} << 20);
  EXPECT_LT(usage.memory_bytes, uint64_t{500} << 20);
}

TEST(ProcessUsage, OfNoProcessIsNothing) {
  EXPECT_EQ(UsageOfTrees({}).cpu_seconds, 0);
  EXPECT_EQ(UsageOfTrees({1 << 29}).memory_bytes, 0u);  // No such process.
}

TEST(ProcessUsage, EndedChildrenCountOnceWaitedFor) {
  const double before = CpuSecondsOfEndedChildren();
  const auto child = Shell(kWork);
  EXPECT_EQ(child->Wait(absl::Minutes(1)), 0);
  EXPECT_GT(CpuSecondsOfEndedChildren(), before + 0.02);
}

}  // namespace
}  // namespace skein
