// SPDX-License-Identifier: Apache-2.0
// Two coordinators with a real etcd: the primary is killed, the standby takes over.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/status_client.h"
#include "tests/faults/live_members.h"
#include "tests/testing/etcd_server.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(30);
constexpr absl::Duration kAnswer = absl::Seconds(2);

// The configuration is a cluster's; its coordinator stays unused. Leases of 2 s, that of the primary too.
class Standby : public testing::Test {
 protected:
  Standby()
      : cluster_({kEndless}),
        first_(absl::StrCat("127.0.0.1:", FreePort())),
        second_(absl::StrCat("127.0.0.1:", FreePort())) {}

  void SetUp() override {
    if (!EtcdServer::Installed()) GTEST_SKIP() << "no etcd on this machine";
    etcd_ = std::make_unique<EtcdServer>();
  }

  std::unique_ptr<Running> StartCoordinator(const std::string& address, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"--config", cluster_.config_path(),  "--listen", address,
                                          "--http",   "127.0.0.1:0",           "--run-id", "run",
                                          "--store",  etcd_->Url("/skein/run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Running>("skein-coordinator", arguments,
                                     std::vector<std::string>{cluster_.history_variable()});
  }
  static int HttpPort(Running* coordinator) {
    return std::stoi(coordinator->WaitForOutput("coordinator listening .* http=http://[^/]+:(\\d+)/"));
  }
  std::string both() const { return first_ + "," + second_; }
  void StartMembers() {
    learner_ = std::make_unique<Running>(
        "skein-learner", std::vector<std::string>{"--coordinator", both(), "--run-dir", cluster_.run_folder()},
        std::vector<std::string>{cluster_.history_variable()});
    one_ = cluster_.StartActor(both());
    two_ = cluster_.StartActor(both());
  }
  template <typename Condition>
  bool WaitForStatus(Condition condition) const {
    const StatusClient client(both());
    return WaitUntil(
        [&] {
          const auto status = client.Get(kAnswer);
          return status.ok() && condition(*status);
        },
        kLimit, absl::Milliseconds(50));
  }
  // The scrape list without the coordinator itself.
  static std::string Targets(int http_port) {
    std::string list = HttpGet(http_port, "/sd/prometheus").body;
    const size_t own = list.find("127.0.0.1:" + std::to_string(http_port));
    if (own != std::string::npos) list.replace(own, list.find('"', own) - own, "coordinator");
    return list;
  }

  const Cluster cluster_;
  const std::string first_, second_;
  std::unique_ptr<EtcdServer> etcd_;
  std::unique_ptr<Running> learner_, one_, two_;
};

using FaultRow06Standby = Standby;

TEST_F(FaultRow06Standby, AStandbyTakesOverFromAKilledPrimaryWithItsState) {
  const auto primary = StartCoordinator(first_);
  const int primary_port = HttpPort(primary.get());
  const auto standby = StartCoordinator(second_, {"--standby"});
  EXPECT_EQ(standby->WaitForOutput("coordinator standby: (\\S+) is the primary"), first_);
  StartMembers();
  uint64_t env_steps = 0;
  std::vector<uint64_t> generations;
  ASSERT_TRUE(WaitForStatus([&](const v1::StatusResponse& status) {
    env_steps = status.progress().env_steps();
    return LiveMembers(status, "actor") == 2 && env_steps >= 5000;
  }));
  const std::string targets = Targets(primary_port);
  ASSERT_TRUE(WaitForStatus([&](const v1::StatusResponse& status) {
    for (const v1::MemberStatus& member : status.members()) generations.push_back(member.generation());
    env_steps = status.progress().env_steps();
    return true;
  }));
  primary->Kill();

  EXPECT_EQ(Targets(HttpPort(standby.get())), targets);
  std::vector<uint64_t> after;
  EXPECT_TRUE(WaitForStatus([&](const v1::StatusResponse& status) {
    EXPECT_GE(status.progress().env_steps(), env_steps);
    EXPECT_EQ(status.joins(), 0u);
    EXPECT_EQ(status.expirations(), 0u);
    after.clear();
    for (const v1::MemberStatus& member : status.members()) after.push_back(member.generation());
    return status.progress().env_steps() >= env_steps + 10000;
  }));
  EXPECT_EQ(after, generations);
  for (Running* member : {learner_.get(), one_.get(), two_.get()}) EXPECT_FALSE(member->ended());

  // The one that was killed comes back as standby, and takes over in turn when the other leaves in order.
  const auto again = StartCoordinator(first_, {"--standby"});
  EXPECT_EQ(again->WaitForOutput("coordinator standby: (\\S+) is the primary"), second_);
  standby->Signal(SIGTERM);
  EXPECT_EQ(standby->WaitForEnd(kLimit), 0);
  HttpPort(again.get());
  EXPECT_TRUE(WaitForStatus([&](const v1::StatusResponse& status) {
    return status.progress().env_steps() >= env_steps + 20000 && LiveMembers(status, "actor") == 2;
  }));
  learner_->Signal(SIGTERM);
  EXPECT_EQ(learner_->WaitForEnd(kLimit), 0);
  EXPECT_EQ(one_->WaitForEnd(kLimit), 0);
  EXPECT_EQ(two_->WaitForEnd(kLimit), 0);
}

// Stopped for longer than its lease, it must not answer when it goes on: another is the primary by then.
TEST_F(FaultRow06Standby, APrimaryThatLostItsLeaseStopsServing) {
  const auto primary = StartCoordinator(first_);
  HttpPort(primary.get());
  primary->Signal(SIGSTOP);
  const auto standby = StartCoordinator(second_, {"--standby"});
  HttpPort(standby.get());
  primary->Signal(SIGCONT);
  EXPECT_EQ(primary->WaitForEnd(kLimit), 75);
  EXPECT_THAT(primary->Output(), HasSubstr("the lease in etcd has ended"));
  EXPECT_TRUE(StatusClient(second_).Get(kAnswer).ok());
}

TEST_F(FaultRow06Standby, WithoutEtcdAPrimaryStopsServing) {
  const auto primary = StartCoordinator(first_);
  HttpPort(primary.get());
  etcd_->Kill();
  EXPECT_EQ(primary->WaitForEnd(kLimit), 75);
}

TEST_F(FaultRow06Standby, AStandbyThatIsToldToEndDoes) {
  const auto primary = StartCoordinator(first_);
  HttpPort(primary.get());
  const auto standby = StartCoordinator(second_, {"--standby"});
  standby->WaitForOutput("coordinator standby: (\\S+)");
  standby->Signal(SIGTERM);
  EXPECT_EQ(standby->WaitForEnd(kLimit), 0);
}

}  // namespace
}  // namespace skein
