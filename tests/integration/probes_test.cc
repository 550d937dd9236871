// SPDX-License-Identifier: Apache-2.0
// What Kubernetes asks the processes of a run (deploy/kubernetes), and how they live under what starts them again.
#include <csignal>

#include "base/net/host_port.h"
#include "gtest/gtest.h"
#include "tests/base/health_check.h"
#include "tests/integration/cluster.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(20);

std::string CoordinatorOf(Cluster* cluster) {
  return FirstMatch(cluster->coordinator().Output(), "coordinator listening grpc=(\\S+)");
}

// As in the chart: it stays when the run is over, and the run folder is not there yet.
std::unique_ptr<Running> StartStayingLearner(Cluster* cluster) {
  return std::make_unique<Running>("skein-learner",
                                   std::vector<std::string>{"--coordinator", CoordinatorOf(cluster), "--run-dir",
                                                            cluster->run_folder() + "/run", "--stay"});
}

TEST(Probes, TellWhoLivesFromWhoIsReady) {
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  const int coordinator = ParseHostPort(CoordinatorOf(&cluster))->port;
  EXPECT_EQ(CheckHealth(coordinator, ""), "SERVING");
  EXPECT_EQ(CheckHealth(coordinator, kReadiness), "SERVING");

  const auto actor = cluster.StartActor();
  const std::string metrics = actor->WaitForOutput("actor joined member=\\S+ metrics=(\\S+)");
  const int actor_port = ParseHostPort(metrics)->port;
  EXPECT_EQ(HttpGet(actor_port, "/healthz").status, 200);
  EXPECT_EQ(HttpGet(actor_port, "/readyz").status, 503);  // Nobody has given it a policy.

  const auto learner = StartStayingLearner(&cluster);
  const int learner_port = ParseHostPort(learner->WaitForOutput("learner listening data=(\\S+)"))->port;
  EXPECT_EQ(CheckHealth(learner_port, ""), "SERVING");
  EXPECT_TRUE(WaitUntil([&] { return CheckHealth(learner_port, kReadiness) == "SERVING"; }, absl::Minutes(1), kPeriod));
  EXPECT_TRUE(WaitUntil([&] { return HttpGet(actor_port, "/readyz").status == 200; }, absl::Minutes(1), kPeriod));
  const int learner_http = std::stoi(FirstMatch(learner->Output(), "learner listening .* metrics=\\S+:(\\d+)"));
  EXPECT_EQ(HttpGet(learner_http, "/healthz").status, 200);
  EXPECT_EQ(HttpGet(learner_http, "/readyz").status, 200);

  learner->Signal(SIGTERM);
  EXPECT_EQ(learner->WaitForEnd(), 0);
  EXPECT_EQ(actor->WaitForEnd(), 0);
}

TEST(Probes, ALearnerThatStaysIsAliveAfterItsRunUntilItIsAskedToEnd) {
  Cluster cluster({"total_steps=4096"});
  cluster.StartCoordinator();
  const auto learner = StartStayingLearner(&cluster);
  const auto actor = cluster.StartActor();
  EXPECT_EQ(actor->WaitForEnd(), 0);
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return status.state() == v1::RUN_STATE_FINISHED && status.members().empty();
  }));
  const int port = ParseHostPort(learner->WaitForOutput("learner listening data=(\\S+)"))->port;
  EXPECT_EQ(CheckHealth(port, ""), "SERVING");
  EXPECT_EQ(CheckHealth(port, kReadiness), "NOT_SERVING");
  EXPECT_FALSE(learner->ended());
  learner->Signal(SIGTERM);
  EXPECT_EQ(learner->WaitForEnd(), 0);
}

}  // namespace
}  // namespace skein
