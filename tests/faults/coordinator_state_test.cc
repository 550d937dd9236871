// SPDX-License-Identifier: Apache-2.0
// The coordinator is killed, and comes back with its state or without.
#include <csignal>
#include <filesystem>
#include <map>

#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/integration/cluster.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kLeaseSeconds = 2;  // The cluster's.

class CoordinatorIsKilled : public testing::Test {
 protected:
  // A learner and two actors that train.
  CoordinatorIsKilled() : cluster_({kEndless}) {
    Start();
    cluster_.StartLearner();
    one_ = cluster_.StartActor();
    two_ = cluster_.StartActor();
    EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return LiveMembers(status, "actor") == 2 && status.progress().env_steps() >= 5000;
    }));
  }

  void Start() { cluster_.StartCoordinator({"--run-dir", cluster_.run_folder()}); }
  std::string ScrapeList() const { return HttpGet(cluster_.http_port(), "/sd/prometheus").body; }
  std::map<std::string, uint64_t> Generations() const {
    std::map<std::string, uint64_t> generations;
    const auto status = cluster_.Status();
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return generations;
    for (const v1::MemberStatus& member : status->members()) generations[member.member_id()] = member.generation();
    return generations;
  }
  // That all three beat again, and when, as the coordinator counts from its start; and that the step counter, once it
  // is known, is never below `env_steps`.
  void ExpectAllBackWithinTwoLeases(uint64_t env_steps) {
    EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
      if (status.progress().env_steps() > 0) {
        EXPECT_GE(status.progress().env_steps(), env_steps);
        env_steps = status.progress().env_steps();
      }
      EXPECT_LT(status.uptime_seconds(), 2 * kLeaseSeconds);
      int back = 0;
      for (const v1::MemberStatus& member : status.members()) {
        if (member.seconds_since_heartbeat() + 0.01 < status.uptime_seconds() && member.has_report()) {
          back += member.report().resident_bytes() > 0 ? 1 : 0;
        }
      }
      return back == 3 || testing::Test::HasFailure();
    }));
  }
  void ExpectTrainingGoesOn() {
    const uint64_t env_steps = EnvSteps(cluster_);
    EXPECT_TRUE(cluster_.WaitForStatus(TrainedAtLeast(env_steps + 10000)));
    for (Running* process : {&cluster_.learner(), one_.get(), two_.get()}) EXPECT_FALSE(process->ended());
    cluster_.learner().Signal(SIGTERM);
    EXPECT_EQ(cluster_.learner().WaitForEnd(absl::Seconds(20)), 0);
    EXPECT_EQ(one_->WaitForEnd(), 0);
    EXPECT_EQ(two_->WaitForEnd(), 0);
  }

  Cluster cluster_;
  std::unique_ptr<Running> one_, two_;
};

using FaultRow06 = CoordinatorIsKilled;
using FaultRow07 = CoordinatorIsKilled;

TEST_F(FaultRow06, AKilledCoordinatorComesBackWithItsMembersItsStepsAndItsScrapeList) {
  const auto members = Generations();
  const std::string list = ScrapeList();
  const uint64_t env_steps = EnvSteps(cluster_);
  cluster_.coordinator().Kill();
  Start();
  EXPECT_EQ(ScrapeList(), list);
  EXPECT_GE(EnvSteps(cluster_), env_steps);
  ExpectAllBackWithinTwoLeases(env_steps);
  EXPECT_EQ(Generations(), members);  // Nobody had to join again.
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->joins(), 0u);
  EXPECT_EQ(status->expirations(), 0u);
  ExpectTrainingGoesOn();
}

// Longer than a lease: nobody's lease runs out while there is no coordinator.
TEST_F(FaultRow06, ACoordinatorThatWasAwayForLongerThanALeaseStillHasItsMembers) {
  const auto members = Generations();
  const uint64_t env_steps = EnvSteps(cluster_);
  cluster_.coordinator().Kill();
  const absl::Duration back = MonotonicNow() + absl::Seconds(1.5 * kLeaseSeconds);
  WaitUntil([&] { return MonotonicNow() >= back; });
  Start();
  ExpectAllBackWithinTwoLeases(env_steps);
  EXPECT_EQ(Generations(), members);
  ExpectTrainingGoesOn();
}

TEST_F(FaultRow07, ACoordinatorThatLostItsStateSaysSoAndMembersJoinAgain) {
  const auto members = Generations();
  const uint64_t env_steps = EnvSteps(cluster_);
  cluster_.coordinator().Kill();
  std::filesystem::remove_all(cluster_.run_folder() + "/coordinator");
  Start();
  ExpectAllBackWithinTwoLeases(env_steps);
  EXPECT_EQ(Generations().size(), members.size());
  for (const auto& [member, generation] : Generations()) {
    const auto before = members.find(member);
    EXPECT_TRUE(before == members.end() || generation > before->second) << member;
  }
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->joins(), 3u);
  EXPECT_THAT(cluster_.coordinator().Output(), HasSubstr("its state is not here: it was lost, members join again"));
  ExpectTrainingGoesOn();
}

TEST_F(FaultRow07, WithItsStateItDoesNotSaySo) {
  cluster_.coordinator().Kill();
  Start();
  ExpectAllBackWithinTwoLeases(0);
  EXPECT_THAT(cluster_.coordinator().Output(), Not(HasSubstr("lost")));
  EXPECT_THAT(cluster_.coordinator().Output(), HasSubstr("goes on as coordinator of run run: 3 members"));
  ExpectTrainingGoesOn();
}

// Also one that is asleep until its learner has ended: that was no end of its run.
TEST_F(FaultRow07, MembersOfAnotherRunAreToldApartByItsId) {
  two_->Signal(SIGSTOP);
  cluster_.coordinator().Kill();
  const Running other("skein-coordinator",
                      {"--config", cluster_.config_path(), "--listen", cluster_.address(), "--http", "127.0.0.1:0",
                       "--run-dir", cluster_.run_folder(), "--run-id", "other"});
  EXPECT_EQ(cluster_.learner().WaitForEnd(), 65);
  two_->Signal(SIGCONT);
  for (Running* actor : {one_.get(), two_.get()}) {
    EXPECT_EQ(actor->WaitForEnd(), 65);
    EXPECT_THAT(actor->Output(), HasSubstr("it serves run other, this member belongs to run run"));
  }
  EXPECT_THAT(cluster_.learner().Output(), HasSubstr("it serves run other, this member belongs to run run"));
  EXPECT_THAT(other.Output(), HasSubstr("of run run, this is run other: starting with none"));
  // None of them has become a member of the other one.
  EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
    EXPECT_EQ(status.run_id(), "other");
    EXPECT_EQ(status.joins(), 0u);
    EXPECT_EQ(status.members_size(), 0);
    return true;
  }));
}

}  // namespace
}  // namespace skein
