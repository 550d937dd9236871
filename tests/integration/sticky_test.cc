// SPDX-License-Identifier: Apache-2.0
// Environments that cannot be moved: their actor is killed, and its episodes begin anew.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/testing/scrape.h"

namespace skein {
namespace {

class StickyEnvs : public testing::TestWithParam<std::string> {};

TEST_P(StickyEnvs, TrainOnWhenTheirActorIsKilled) {
  Cluster cluster({"total_steps=1000000000", "env.id=StickyCartPole-v0", "rollout.num_envs=8",
                   absl::StrCat("sync.mode=", GetParam())});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const int port = std::stoi(cluster.learner().WaitForOutput("metrics=\\S+:(\\d+)"));
  const auto restarted = [port] { return Scrape(port, "skein_learner_restarted_episodes_total"); };
  // One runner each: each of the two groups of 4 has an actor of its own.
  const auto dies = cluster.StartActor();
  dies->WaitForOutput("(actor joined)");
  const auto stays = cluster.StartActor();
  uint64_t trained = 0;
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    trained = status.progress().env_steps();
    return trained > 5000 && status.members_size() == 3;
  }));
  EXPECT_EQ(restarted(), 0);

  dies->Kill();
  // In mode async the other actor goes on alone until the groups of the dead one may go to it, after 5 s.
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    return status.progress().env_steps() > trained + 10000 && restarted() > 0;
  }));
  // Those of one group, or of both if the actor that was killed was alone at first.
  const double episodes = restarted();
  EXPECT_TRUE(episodes == 4 || episodes == 8) << episodes;
  EXPECT_EQ(Scrape(port, "skein_learner_env_steps_imbalance"), 0);

  // An actor that comes later finds no group without one, until the other leaves in order.
  const auto late = cluster.StartActor();
  late->WaitForOutput("(actor joined)");
  stays->Signal(SIGTERM);
  EXPECT_EQ(stays->WaitForEnd(absl::Seconds(10)), 0);
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    return status.progress().env_steps() > trained + 20000 && restarted() == episodes + 8;
  }));
  EXPECT_EQ(Scrape(port, "skein_learner_env_steps_imbalance"), 0);
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Seconds(10)), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, StickyEnvs, testing::Values("on_policy", "overlapped", "async"),
                         [](const auto& mode) { return mode.param; });

}  // namespace
}  // namespace skein
