// SPDX-License-Identifier: Apache-2.0
// Processes that come and go while a run goes on.
#include <algorithm>
#include <csignal>

#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"

namespace skein {
namespace {

constexpr char kEndless[] = "total_steps=1000000000";

int CountMembers(const v1::StatusResponse& status, const std::string& role) {
  return static_cast<int>(std::count_if(status.members().begin(), status.members().end(),
                                        [&](const v1::MemberStatus& member) { return member.role() == role; }));
}

auto TrainedAtLeast(uint64_t env_steps) {
  return [env_steps](const v1::StatusResponse& status) { return status.progress().env_steps() >= env_steps; };
}

TEST(Elastic, OneActorIsKilledAnotherJoinsAndTheRunReachesItsReturn) {
  Cluster cluster({});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto stays = cluster.StartActor();
  const auto dies = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return CountMembers(status, "actor") == 2 && status.progress().env_steps() >= 20000;
  }));
  dies->Kill();
  const auto joins = cluster.StartActor();

  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_EQ(stays->WaitForEnd(), 0);
  EXPECT_EQ(joins->WaitForEnd(), 0);
  // The dead one may be expelled only after the end of such a short run.
  EXPECT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.expirations() > 0; }));

  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_FINISHED);
  EXPECT_EQ(status->joins(), 4u);
  EXPECT_EQ(status->leaves(), 3u);
  EXPECT_EQ(status->expirations(), 1u);
  const v1::StepAccount& account = status->progress().account();
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.pending(), 0u);
  EXPECT_EQ(account.rejected(), 0u);
  EXPECT_EQ(account.trained(), 200704u);
  EXPECT_GT(StepsAtTheEnd(*joins), 0u);
  const Ended eval = RunToEnd("skein", {"eval", "--checkpoint", cluster.run_folder(), "--json"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_GE(nlohmann::json::parse(eval.out).at("return_mean").get<double>(), 475);
}

TEST(Elastic, TheCoordinatorIsKilledAndComesBack) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor();
  const auto two = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return CountMembers(status, "actor") == 2 && status.progress().env_steps() >= 5000;
  }));
  cluster.coordinator().Kill();
  cluster.StartCoordinator();
  uint64_t env_steps = 0;
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    env_steps = status.progress().env_steps();
    return CountMembers(status, "actor") == 2 && CountMembers(status, "learner") == 1 && env_steps > 0;
  }));
  EXPECT_TRUE(cluster.WaitForStatus(TrainedAtLeast(env_steps + 10000)));
  EXPECT_FALSE(cluster.learner().ended());
  EXPECT_FALSE(one->ended());
  EXPECT_FALSE(two->ended());

  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Seconds(10)), 0);
  EXPECT_EQ(one->WaitForEnd(), 0);  // They hear that the run has stopped.
  EXPECT_EQ(two->WaitForEnd(), 0);
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_STOPPED);
  EXPECT_EQ(status->expirations(), 0u);
  // What arrived for an iteration that the stop cut off is lost or stale.
  const v1::StepAccount& account = status->progress().account();
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.pending(), 0u);
  EXPECT_EQ(account.rejected(), 0u);
}

TEST(Elastic, TheLearnerIsKilledAndAnotherGoesOnFromItsCheckpoint) {
  Cluster cluster({kEndless, "checkpoint.interval_steps=5120"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor();
  const auto two = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus(TrainedAtLeast(10240)));
  cluster.learner().Kill();
  // Its rank is free when its lease has ended.
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.expirations() == 1; }));
  const uint64_t saved = Account(cluster.run_folder()).trained();
  EXPECT_GE(saved, 5120u);
  cluster.StartLearner();
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    return CountMembers(status, "learner") == 1 && status.state() == v1::RUN_STATE_TRAINING &&
           status.progress().env_steps() >= saved + 10000;
  }));
  EXPECT_FALSE(one->ended());
  EXPECT_FALSE(two->ended());

  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Seconds(10)), 0);
  EXPECT_EQ(one->WaitForEnd(), 0);
  EXPECT_EQ(two->WaitForEnd(), 0);
  const v1::StepAccount account = Account(cluster.run_folder());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.pending(), 0u);
  EXPECT_EQ(account.trained(), ReadJson(NewestCheckpoint(cluster.run_folder()) + "/manifest.json").at("env_steps"));
}

}  // namespace
}  // namespace skein
