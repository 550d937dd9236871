// SPDX-License-Identifier: Apache-2.0
#include "base/process/fault_hook.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<FaultPlan> Plan(const std::string& spec) {
  auto plan = FaultPlan::Parse(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : std::make_unique<FaultPlan>();
}

// The passages of the first `count` that fail.
std::vector<int> Failing(const std::string& spec, FaultPoint point, int count) {
  const auto plan = Plan(spec);
  std::vector<int> failing;
  for (int passage = 1; passage <= count; ++passage) {
    if (plan->Pass(point) != FaultKind::kNone) failing.push_back(passage);
  }
  return failing;
}

TEST(FaultPlan, APointWithoutAClauseNeverFails) { EXPECT_THAT(Failing("env:nan", FaultPoint::kReceipt, 9), IsEmpty()); }

TEST(FaultPlan, AClauseWithoutKeysFailsAlways) {
  EXPECT_THAT(Failing("receipt:drop", FaultPoint::kReceipt, 3), ElementsAre(1, 2, 3));
}

TEST(FaultPlan, AtIsOnePassageAfterLetsSomeThroughTimesBoundsThem) {
  EXPECT_THAT(Failing("env:throw@at=3", FaultPoint::kEnv, 6), ElementsAre(3));
  EXPECT_THAT(Failing("disk:eio@after=4", FaultPoint::kDisk, 6), ElementsAre(5, 6));
  EXPECT_THAT(Failing("disk:eio@after=1,times=2", FaultPoint::kDisk, 9), ElementsAre(2, 3));
  EXPECT_THAT(Failing("env:nan@at=2;env:throw@at=5", FaultPoint::kEnv, 9), ElementsAre(2, 5));
}

TEST(FaultPlan, TheSameSeedFailsAtTheSamePassages) {
  const std::string spec = "receipt:drop@p=0.25,seed=7";
  const std::vector<int> failing = Failing(spec, FaultPoint::kReceipt, 4000);
  EXPECT_EQ(Failing(spec, FaultPoint::kReceipt, 4000), failing);
  EXPECT_NE(Failing("receipt:drop@p=0.25,seed=8", FaultPoint::kReceipt, 4000), failing);
  // 1000 of 4000 are expected, the standard deviation is sqrt(4000 x 0.25 x 0.75) = 27.
  EXPECT_GT(failing.size(), 860u);
  EXPECT_LT(failing.size(), 1140u);
  EXPECT_THAT(Failing("receipt:drop@p=0", FaultPoint::kReceipt, 99), IsEmpty());
}

TEST(FaultPlan, AClauseOfANamedPointCountsThatOneAlone) {
  const auto plan = Plan("checkpoint:kill@point=renamed,at=2");
  EXPECT_EQ(plan->Pass(FaultPoint::kCheckpoint, "renamed"), FaultKind::kNone);
  EXPECT_EQ(plan->Pass(FaultPoint::kCheckpoint, "linked"), FaultKind::kNone);
  EXPECT_EQ(plan->Pass(FaultPoint::kCheckpoint, "renamed"), FaultKind::kKill);
}

TEST(FaultPlan, BytesAreCountedOverFiles) {
  const auto plan = Plan("checkpoint:kill@bytes=150");
  EXPECT_EQ(plan->Pass(FaultPoint::kCheckpoint, "renamed"), FaultKind::kNone);
  EXPECT_EQ(plan->PassBytes(FaultPoint::kDisk, 500), 500u);
  EXPECT_EQ(plan->PassBytes(FaultPoint::kCheckpoint, 100), 100u);
  EXPECT_EQ(plan->PassBytes(FaultPoint::kCheckpoint, 100), 50u);  // 100 + 50 = 150.
  EXPECT_EQ(plan->PassBytes(FaultPoint::kCheckpoint, 100), 100u);
  EXPECT_EQ(Plan("checkpoint:kill@bytes=0")->PassBytes(FaultPoint::kCheckpoint, 100), 0u);
}

TEST(FaultPlan, AMarkerMakesItHappenOnceForAllProcesses) {
  const ScratchFolder folder;
  const std::string spec = "env:crash@marker=" + folder.path() + "/crashed";
  EXPECT_THAT(Failing(spec, FaultPoint::kEnv, 5), ElementsAre(1));
  EXPECT_THAT(Failing(spec, FaultPoint::kEnv, 5), IsEmpty());  // Another process of the run.
}

TEST(FaultPlan, WhatIsNotUnderstoodIsRefused) {
  for (const char* spec : {"",
                           ";",
                           "env",
                           "env:melt",
                           "env:nan@",
                           "env:nan@at",
                           "env:nan@at=",
                           "env:nan@at=0",
                           "env:nan@at=-1",
                           "env:nan@at=1x",
                           "env:nan@p=2",
                           "env:nan@p=nan",
                           "env:nan@p=",
                           "env:nan@at=1,at=2",
                           "env:nan@colour=red",
                           "env:nan@bytes=4",
                           "receipt:kill",
                           "checkpoint:kill@point=",
                           "checkpoint:kill@bytes=1,at=2",
                           "env:nan;;env:nan",
                           "env:nan@times=0",
                           "env:nan@marker=",
                           "env:nan@at=99999999999999999999"}) {
    const auto plan = FaultPlan::Parse(spec);
    EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << spec;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr("SKEIN_FAULTS"));
  }
}

TEST(FaultHook, IsOffUnlessTheVariableIsSet) {
  unsetenv("SKEIN_FAULTS");
  EXPECT_TRUE(InstallFaults().ok());
  EXPECT_FALSE(FaultsInstalled());
  EXPECT_EQ(NextFault(FaultPoint::kEnv), FaultKind::kNone);
  EXPECT_EQ(BytesBeforeFault(FaultPoint::kCheckpoint, 7), 7u);
  setenv("SKEIN_FAULTS", "env:melt", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(InstallFaults()));
  EXPECT_FALSE(FaultsInstalled());
  unsetenv("SKEIN_FAULTS");
}

}  // namespace
}  // namespace skein
