// SPDX-License-Identifier: Apache-2.0
// Somebody sets the clock while a run of two ranks and two actors goes on: all processes see it
// (tests/testing/clock_shift.cc).
#include "absl/time/clock.h"

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/integration/cluster.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr absl::Duration kLease = absl::Seconds(2);  // The cluster's.

class FaultRow32 : public testing::Test {
 protected:
  FaultRow32() : cluster_({kEndless}), environment_({"LD_PRELOAD=" CLOCK_SHIFT, "SKEIN_CLOCK_SHIFT=" + path()}) {
    StartCoordinator();
    for (int rank = 0; rank < 2; ++rank) members_.push_back(cluster_.StartRank(rank, 2, environment_));
    for (int actor = 0; actor < 2; ++actor) members_.push_back(cluster_.StartActor("", environment_));
    EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return status.members_size() == 4 && status.progress().env_steps() >= 5000;
    }));
  }

  std::string path() const { return folder_.path() + "/shift"; }
  void StartCoordinator() { cluster_.StartCoordinator({"--run-dir", cluster_.run_folder()}, environment_); }

  // For all processes at once.
  void SetClock(int hours) {
    folder_.Write("next", std::to_string(3600 * hours));
    ASSERT_EQ(std::rename((folder_.path() + "/next").c_str(), path().c_str()), 0);
    // It is so for programs that look at the clock.
    Running date("/bin/date", {"+%s"}, environment_);
    EXPECT_EQ(date.WaitForEnd(), 0);
    EXPECT_NEAR(std::stoll(date.Output()), absl::ToUnixSeconds(absl::Now()) + 3600 * hours, 60);
  }

  void ExpectNothingExpires(int hours) {
    const auto before = cluster_.Status();
    ASSERT_TRUE(before.ok()) << before.status();
    SetClock(hours);
    const absl::Duration end = MonotonicNow() + 2 * kLease;
    // Each second some iterations and as many barriers; each of the members beats five times.
    EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
      for (const v1::MemberStatus& member : status.members()) {
        EXPECT_LT(member.seconds_since_heartbeat(), absl::ToDoubleSeconds(kLease)) << member.member_id();
      }
      return MonotonicNow() >= end && status.progress().env_steps() >= before->progress().env_steps() + 10000;
    }));
    const auto after = cluster_.Status();
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->expirations(), 0u);
    EXPECT_EQ(after->joins(), 4u);
    EXPECT_EQ(after->leaves(), 0u);
    EXPECT_EQ(Scrape(cluster_.http_port(), "skein_coordinator_barrier_timeouts_total"), 0);
    for (const auto& member : members_) EXPECT_FALSE(member->ended());
  }

  // What should expire still does, and no wait lasts an hour.
  void ExpectTimeStillPasses() {
    members_.back()->Kill();
    EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) { return status.expirations() == 1; },
                                       absl::Seconds(10)));
    members_.back() = cluster_.StartActor("", environment_);
    EXPECT_TRUE(cluster_.WaitForStatus(LiveActors(2), absl::Seconds(20)));
    // Calls to who is silent end in time.
    cluster_.coordinator().Signal(SIGSTOP);
    for (const auto& member : members_)
      member->WaitForOutput("coordinator at (\\S+) does not answer", absl::Seconds(20));
    cluster_.coordinator().Kill();
    StartCoordinator();
    const uint64_t env_steps = EnvSteps(cluster_);
    EXPECT_TRUE(cluster_.WaitForStatus(
        [&](const v1::StatusResponse& status) {
          return status.members_size() == 4 && status.progress().env_steps() >= env_steps + 5000;
        },
        absl::Seconds(20)));
    for (size_t rank = 0; rank < 2; ++rank) members_[rank]->Signal(SIGTERM);
    for (const auto& member : members_) EXPECT_EQ(member->WaitForEnd(absl::Seconds(30)), 0);
    cluster_.coordinator().Signal(SIGTERM);
    EXPECT_EQ(cluster_.coordinator().WaitForEnd(absl::Seconds(10)), 0);
  }

  const ScratchFolder folder_;
  Cluster cluster_;
  const std::vector<std::string> environment_;
  std::vector<std::unique_ptr<Running>> members_;  // Ranks 0 and 1, two actors.
};

TEST_F(FaultRow32, AnHourForwardExpiresNothing) {
  ExpectNothingExpires(1);
  ExpectTimeStillPasses();
}

TEST_F(FaultRow32, AnHourBackMakesNoWaitLonger) {
  ExpectNothingExpires(-1);
  ExpectTimeStillPasses();
}

}  // namespace
}  // namespace skein
