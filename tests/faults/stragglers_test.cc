// SPDX-License-Identifier: Apache-2.0
// Row 20: environments, or an actor's node, that are ten times as slow as the others.
#include <algorithm>
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// 16 environments in groups of one, steps of 10 ms that need no processor.
std::vector<std::string> SixteenEnvironments(const std::string& mode, int slow) {
  return {kEndless,
          "env.id=Latency-v0",
          "env.latency.step_ms=10",
          "env.latency.slow_envs=" + std::to_string(slow),
          "rollout.num_envs=16",
          "rollout.envs_per_runner=1",
          "ppo.epochs=1",
          "sync.mode=" + mode};
}

TEST(FaultRow20, OnPolicyTheLearnersWaitShowsASlowEnvironmentAndNamesTheActor) {
  Cluster cluster(SixteenEnvironments("on_policy", 1));  // 64 steps each: 0.64 s, and 6.4 s.
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor("", {}, 8);
  const auto two = cluster.StartActor("", {}, 8);
  // It says so once it has waited for 5 s.
  const std::string named = cluster.learner().WaitForOutput("waiting for trajectories from (actor-\\d) \\(1\\)");
  EXPECT_FALSE(named.empty());
  EXPECT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    const v1::MemberStatus* learner = FindMember(status, "learner-0");
    return learner != nullptr && learner->report().starving_seconds() > 1;
  }));
  EXPECT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    const v1::MemberStatus* learner = FindMember(status, "learner-0");
    const auto& stages = learner->report().stage_seconds();
    return status.progress().iteration() >= 1 && stages.count("barrier") > 0 &&
           stages.at("barrier") > stages.at("update");
  }));
}

TEST(FaultRow20, OnPolicyTheOthersTakeOverTheTicketsOfASlowActor) {
  Cluster cluster(SixteenEnvironments("on_policy", 0));
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto slow = cluster.StartActor("", {"SKEIN_LATENCY_FACTOR=10"}, 4);
  slow->WaitForOutput("(actor joined member=actor-1)");
  std::vector<std::unique_ptr<Running>> others;
  for (int i = 0; i < 3; ++i) others.push_back(cluster.StartActor("", {}, 4));
  // A ticket that it held was served by another: what it brings is stale.
  EXPECT_TRUE(WaitUntil(
      [&] {
        std::map<uint64_t, std::string> served_by;
        std::set<uint64_t> too_late;
        for (const HistoryEvent& event : cluster.History()) {
          if (event.event != "batch") continue;
          if (event.Text("result") == "accepted") served_by[event.Number("ticket")] = event.Text("actor");
          if (event.Text("result") == "stale" && event.Text("actor") == "actor-1")
            too_late.insert(event.Number("ticket"));
        }
        return std::any_of(too_late.begin(), too_late.end(), [&](uint64_t ticket) {
          return served_by.count(ticket) > 0 && served_by[ticket] != "actor-1";
        });
      },
      absl::Minutes(2), absl::Milliseconds(300)));
  // All 16 step 1,600 env steps a second, the fast 12 runners 1,200 at most. Waiting for the slow one would leave 160.
  EXPECT_GE(BestRate(cluster, absl::Seconds(5), 500, absl::Seconds(60)), 500);
}

TEST(FaultRow20, FirstFragmentsThatTakeLongAreHeldAgainstNobody) {
  // 256 steps of 25 ms: 6.4 s, and nobody knows beforehand.
  Cluster cluster({kEndless, "env.id=Latency-v0", "env.latency.step_ms=25", "rollout.num_envs=8",
                   "rollout.envs_per_runner=1", "rollout.steps_per_iteration=2048", "ppo.epochs=1",
                   "sync.mode=on_policy"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto actor = cluster.StartActor("", {}, 8);
  EXPECT_TRUE(
      cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.progress().iteration() >= 2; }));
  // After 5 s it says who holds how much: each runner has a ticket in the second iteration, too.
  EXPECT_THAT(cluster.learner().Output(), HasSubstr("waiting for trajectories from actor-1 (8)"));
  EXPECT_THAT(cluster.learner().Output(), Not(ContainsRegex("waiting for trajectories from actor-1 .[1-7]")));
}

TEST(FaultRow20, AsynchronouslyNoMoreThanTheShareOfASlowEnvironmentIsLost) {
  Cluster cluster(SixteenEnvironments("async", 1));
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor("", {}, 8);
  const auto two = cluster.StartActor("", {}, 8);
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 2 && status.progress().env_steps() > 2048;
  }));
  // 16 environments step 1,600 env steps a second; 1/16 is its share. What sleeps and messages take is for the machine.
  constexpr double kWithoutIt = 1600.0 * 15 / 16, kOverhead = 0.85;
  EXPECT_GE(BestRate(cluster, absl::Seconds(5), kWithoutIt * kOverhead, absl::Seconds(60)), kWithoutIt * kOverhead);
}

}  // namespace
}  // namespace skein
