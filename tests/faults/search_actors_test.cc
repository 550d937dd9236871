// SPDX-License-Identifier: Apache-2.0
// Rows 1, 3, 5 and 20 where actors play the directions of a search. H = 0.2 s, L = 2 s.
#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr double kLease = 2, kHeartbeat = 0.2;  // s
constexpr double kLoaded = 1;                   // s that a loaded machine may be late.

double Now() { return absl::ToDoubleSeconds(MonotonicNow()); }

// When the coordinator noted that it expelled somebody; 0: it has not.
double TimeOfExpiry(const Cluster& cluster) {
  for (const HistoryEvent& event : cluster.History()) {
    if (event.event == "expire") return event.seconds;
  }
  return 0;
}

constexpr char kArs[] = "configs/cartpole_ars.yaml";

// 16 directions of an iteration, each a work order of its own: twice 16 steps of 5 ms, which need no processor, 0.16 s.
std::vector<std::string> SixteenDirections() {
  return {kEndless,
          "env.id=Latency-v0",
          "env.latency.step_ms=5",
          "directions.num_dirs=16",
          "directions.dir_chunk=1",
          "directions.episode_length=16"};
}

bool TwoTrain(const v1::StatusResponse& status) {
  return LiveMembers(status, "actor") == 2 && status.progress().iteration() >= 3;
}

TEST(FaultRow01, OneOfFourActorsThatSearchIsKilled) {
  Cluster cluster(SixteenDirections(), kArs);
  cluster.StartCoordinator();
  cluster.StartLearner();
  std::vector<std::unique_ptr<Running>> actors;
  for (int i = 0; i < 4; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 4 && status.progress().iteration() >= 3;
  }));
  const double killed = Now();
  actors[2]->Kill();
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(3)));
  const double expelled = TimeOfExpiry(cluster);
  EXPECT_GE(expelled - killed, kLease - 2 * kHeartbeat);
  EXPECT_LE(expelled - killed, kLease + kHeartbeat + kLoaded);
  EXPECT_EQ(Scrape(cluster.http_port(), R"(skein_coordinator_expirations_total{role="actor"})"), 1);
  const uint64_t env_steps = EnvSteps(cluster);
  ASSERT_TRUE(cluster.WaitForStatus(TrainedAtLeast(env_steps + 5 * 16 * 2 * 16)));  // Five iterations.
  double last = killed, pause = 0;
  for (const HistoryEvent& event : cluster.History()) {
    if (event.event != "trained" || event.seconds <= killed) continue;
    pause = std::max(pause, event.seconds - last);
    last = event.seconds;
  }
  EXPECT_GT(last, expelled);
  EXPECT_LE(pause, kLease);  // Nobody waits for the lease: its stream broke.
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->progress().account().rejected(), 0u);
  EXPECT_EQ(status->progress().account().lost(), 0u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(actors[i]->ended(), i == 2);
}

TEST(FaultRow03, AFrozenActorThatSearchesJoinsAgainAndPlaysTheNewestPolicy) {
  Cluster cluster(SixteenDirections(), kArs);
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto stays = cluster.StartActor();
  const auto freezes = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus(TwoTrain));
  const double stopped = Now();
  freezes->Signal(SIGSTOP);
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(1)));
  EXPECT_GE(TimeOfExpiry(cluster) - stopped, kLease - 2 * kHeartbeat);
  EXPECT_LE(TimeOfExpiry(cluster) - stopped, kLease + kHeartbeat + kLoaded);
  const auto frozen = cluster.Status();
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  // The other one plays its directions meanwhile.
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    return status.progress().iteration() >= frozen->progress().iteration() + 3;
  }));
  ASSERT_TRUE(WaitUntil([&] { return Now() >= stopped + 3 * kLease; }, absl::Seconds(20), absl::Milliseconds(50)));
  freezes->Signal(SIGCONT);
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(2)));
  EXPECT_GE(
      Scrape(cluster.http_port(), R"(skein_coordinator_refusals_total{call="Heartbeat",code="failed_precondition"})"),
      1);
  freezes->WaitForOutput("(joined again as )");
  EXPECT_THAT(freezes->Output(), HasSubstr("is stale; join again"));
  const std::string member = FirstMatch(freezes->Output(), "joined again as ([^ ]+)");
  ASSERT_FALSE(member.empty());
  EXPECT_TRUE(WaitUntil(
      [&] {
        const std::vector<HistoryEvent> history = cluster.History();
        return std::any_of(history.begin(), history.end(), [&](const HistoryEvent& event) {
          return event.event == "batch" && event.Text("result") == "accepted" &&
                 event.Number("policy_version") > frozen->progress().iteration() + 3 && event.Text("actor") == member;
        });
      },
      absl::Minutes(1), absl::Milliseconds(100)));
}

TEST(FaultRow05, WithoutActorsASearchWaitsAndGoesOnByItself) {
  Cluster cluster(SixteenDirections(), kArs);
  cluster.StartCoordinator();
  cluster.StartLearner();
  std::vector<std::unique_ptr<Running>> actors;
  for (int i = 0; i < 2; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus(TwoTrain));
  actors[0]->Signal(SIGTERM);
  actors[1]->Kill();
  uint64_t memory = 0;
  const auto learner_memory = [](const v1::StatusResponse& status) {
    const v1::MemberStatus* learner = FindMember(status, "learner-0");
    return learner == nullptr ? 0 : learner->report().resident_bytes();
  };
  ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    memory = learner_memory(status);
    return LiveMembers(status, "actor") == 0 && status.state() == v1::RUN_STATE_WAITING_FOR_DATA;
  }));
  const uint64_t env_steps = EnvSteps(cluster);
  absl::SleepFor(absl::Seconds(10));
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_WAITING_FOR_DATA);
  EXPECT_EQ(status->progress().env_steps(), env_steps);
  EXPECT_LE(learner_memory(*status), memory + (4 << 20));
  const auto late = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& now) {
    return now.state() == v1::RUN_STATE_TRAINING && now.progress().env_steps() >= env_steps + 2 * 16 * 2 * 16;
  }));
}

TEST(FaultRow20, TheOthersPlayTheDirectionsOfASlowActor) {
  Cluster cluster(SixteenDirections(), kArs);
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto slow = cluster.StartActor("", {"SKEIN_LATENCY_FACTOR=20"}, 4);
  slow->WaitForOutput("(actor joined member=actor-1)");
  std::vector<std::unique_ptr<Running>> others;
  for (int i = 0; i < 3; ++i) others.push_back(cluster.StartActor("", {}, 4));
  // A work order that it held was served by another: what it brings is stale.
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
  // 12 runners step 2,400 env steps a second. The slow actor needs 3.2 s for a direction: waiting for it would leave
  // 160.
  EXPECT_GE(BestRate(cluster, absl::Seconds(5), 400, absl::Seconds(60)), 400);
}

TEST(FaultRow20, TheLearnersWaitNamesTheActorThatPlaysASlowDirection) {
  std::vector<std::string> settings = SixteenDirections();
  settings.insert(settings.end(), {"env.latency.slow_envs=1", "env.latency.slow_factor=50"});  // 0.16 s, and 8 s.
  Cluster cluster(settings, kArs);
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor("", {}, 8);
  const auto two = cluster.StartActor("", {}, 8);
  // It says so once it has waited for 5 s.
  EXPECT_FALSE(cluster.learner().WaitForOutput("waiting for trajectories from (actor-\\d) \\(1\\)").empty());
  EXPECT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    const v1::MemberStatus* learner = FindMember(status, "learner-0");
    if (learner == nullptr || status.progress().iteration() < 1) return false;
    const auto& stages = learner->report().stage_seconds();
    return learner->report().starving_seconds() > 1 && stages.count("barrier") > 0 &&
           stages.at("barrier") > stages.at("update");
  }));
}

}  // namespace
}  // namespace skein
