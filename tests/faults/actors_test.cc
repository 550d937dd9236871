// SPDX-License-Identifier: Apache-2.0
// Rows 1 to 5: actors that die, leave, freeze, come and are gone. H = 0.2 s, L = 2 s.
#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/integration/run_files.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr double kLease = 2, kHeartbeat = 0.2;  // s
constexpr double kLoaded = 1;                   // s that a loaded machine may be late.

double Now() { return absl::ToDoubleSeconds(MonotonicNow()); }

std::string MemberId(Running* actor) { return actor->WaitForOutput("actor joined member=(\\S+)"); }

std::vector<HistoryEvent> Select(const std::vector<HistoryEvent>& history, const std::string& event) {
  std::vector<HistoryEvent> selected;
  std::copy_if(history.begin(), history.end(), std::back_inserter(selected),
               [&](const HistoryEvent& one) { return one.event == event; });
  return selected;
}

// When the coordinator noted `event` of `member`; 0: it has not.
double TimeOf(const std::vector<HistoryEvent>& history, const std::string& event, const std::string& member) {
  for (const HistoryEvent& one : history) {
    if (one.event == event && one.Text("member") == member) return one.seconds;
  }
  return 0;
}

// How many fragments of `actor` (empty: of all) arrived after `from`, `to` included.
int FragmentsOf(const std::vector<HistoryEvent>& history, const std::string& actor, double from, double to) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), [&](const HistoryEvent& event) {
    return event.event == "batch" && (actor.empty() || event.Text("actor") == actor) && event.seconds > from &&
           event.seconds <= to;
  }));
}

// Whatever each actor sent has arrived: sequences without a gap.
void ExpectNoGaps(const std::vector<HistoryEvent>& history) {
  std::map<std::pair<std::string, uint64_t>, std::set<uint64_t>> sequences;
  for (const HistoryEvent& fragment : Select(history, "batch")) {
    sequences[{fragment.Text("actor"), fragment.Number("generation")}].insert(fragment.Number("sequence"));
  }
  for (const auto& [connection, numbers] : sequences) {
    EXPECT_EQ(*numbers.rbegin(), numbers.size()) << connection.first << " generation " << connection.second;
  }
}

// A rollout of 64 steps of 10 ms, which need no processor, takes 0.64 s.
TEST(FaultRow01, OneOfFourActorsIsKilledInMidRollout) {
  // Four env groups: each of the four actors has one ticket of every iteration.
  Cluster cluster({kEndless, "env.id=Latency-v0", "env.latency.step_ms=2.5", "rollout.num_envs=16", "ppo.epochs=1"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  std::vector<std::unique_ptr<Running>> actors;
  for (int i = 0; i < 4; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 4 && status.progress().env_steps() > 0;
  }));
  std::mt19937 random = FaultRandom(1);
  const size_t number = Choose(&random, 0, 3);
  const double delay = 0.1 + 0.001 * static_cast<double>(Choose(&random, 0, 300));
  SayChoice(absl::StrCat("actor ", number + 1, " of 4 is killed ", delay, " s into a rollout"));
  const std::string victim = MemberId(actors[number].get());
  // Its next rollout begins when an iteration has been trained on that all four had a part in.
  double begun = 0;
  ASSERT_TRUE(WaitUntil(
      [&] {
        const std::vector<HistoryEvent> history = cluster.History();
        const std::vector<HistoryEvent> iterations = Select(history, "trained");
        if (iterations.size() < 3 || iterations.back().seconds < Now() - 0.1) return false;
        begun = iterations.back().seconds;
        return FragmentsOf(history, victim, iterations[iterations.size() - 2].seconds, begun) == 1;
      },
      absl::Minutes(1), absl::Milliseconds(10)));
  ASSERT_TRUE(WaitUntil([&] { return Now() >= begun + delay; }, absl::Seconds(1)));
  const double killed = Now();
  actors[number]->Kill();
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(3)));
  EXPECT_EQ(Scrape(cluster.http_port(), R"(skein_coordinator_expirations_total{role="actor"})"), 1);
  EXPECT_EQ(Scrape(cluster.http_port(), R"(skein_coordinator_members{role="actor"})"), 3);
  ASSERT_TRUE(cluster.WaitForStatus(TrainedAtLeast(EnvSteps(cluster) + 2048)));

  const std::vector<HistoryEvent> history = cluster.History();
  const double expelled = TimeOf(history, "expire", victim);
  EXPECT_GE(expelled - killed, kLease - 2 * kHeartbeat);
  EXPECT_LE(expelled - killed, kLease + kHeartbeat + kLoaded);
  double last = begun, pause = 0;
  for (const HistoryEvent& trained : Select(history, "trained")) {
    if (trained.seconds <= begun) continue;
    pause = std::max(pause, trained.seconds - last);
    if (last == begun) {
      // The others did its part. Fragments are in the history before their iteration's "trained", at any load.
      EXPECT_GE(FragmentsOf(history, "", begun, trained.seconds), 4);
    }
    last = trained.seconds;
  }
  EXPECT_GT(last, expelled);
  EXPECT_LE(pause, kLease);                                  // Nobody waits for the lease: its stream broke.
  EXPECT_EQ(FragmentsOf(history, victim, begun, Now()), 0);  // What it had begun never arrived.
  ExpectNoGaps(history);
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->progress().account().rejected(), 0u);
  EXPECT_EQ(status->progress().account().lost(), 0u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(actors[i]->ended(), i == number);
}

TEST(FaultRow02, AnActorThatIsAskedToLeavesInOrderAndDeliversWhatItHasOnce) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto leaves = cluster.StartActor();
  const auto stays = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 2 && status.progress().env_steps() > 0;
  }));
  const std::string member = MemberId(leaves.get());
  leaves->Signal(SIGTERM);
  EXPECT_EQ(leaves->WaitForEnd(absl::Seconds(5)), 0);
  const auto after = cluster.Status();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->leaves(), 1u);
  EXPECT_EQ(after->expirations(), 0u);
  EXPECT_EQ(LiveMembers(*after, "actor"), 1);
  // All that it finished has arrived, each fragment once.
  uint64_t delivered = 0;
  for (const HistoryEvent& fragment : Select(cluster.History(), "batch")) {
    if (fragment.Text("actor") != member) continue;
    EXPECT_NE(fragment.Text("result"), "duplicate");
    EXPECT_NE(fragment.Text("result"), "rejected");
    delivered += fragment.Number("env_steps");
  }
  EXPECT_EQ(delivered, StepsAtTheEnd(*leaves));
  ExpectNoGaps(cluster.History());
  // The other one does the work of both.
  EXPECT_TRUE(cluster.WaitForStatus(TrainedAtLeast(after->progress().env_steps() + 10000)));

  stays->Signal(SIGTERM);
  EXPECT_EQ(stays->WaitForEnd(absl::Seconds(5)), 0);
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Seconds(20)), 0);
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_STOPPED);
  EXPECT_EQ(status->expirations(), 0u);
  const v1::StepAccount& account = status->progress().account();
  EXPECT_EQ(account.pending(), 0u);
  EXPECT_EQ(account.collected(), StepsAtTheEnd(*leaves) + StepsAtTheEnd(*stays)) << account.ShortDebugString();
}

TEST(FaultRow03, AFrozenActorIsExpelledIsRefusedUnderItsOldLeaseAndJoinsAgain) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto stays = cluster.StartActor();
  const auto freezes = cluster.StartActor();
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 2 && status.progress().env_steps() > 5000;
  }));
  const std::string member = MemberId(freezes.get());
  const double frozen = Now();
  freezes->Signal(SIGSTOP);
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(1)));
  const double expelled = TimeOf(cluster.History(), "expire", member);
  EXPECT_GE(expelled - frozen, kLease - 2 * kHeartbeat);
  EXPECT_LE(expelled - frozen, kLease + kHeartbeat + kLoaded);
  ASSERT_TRUE(WaitUntil([&] { return Now() >= frozen + 3 * kLease; }, absl::Seconds(20), absl::Milliseconds(50)));
  freezes->Signal(SIGCONT);
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(2)));
  EXPECT_GE(
      Scrape(cluster.http_port(), R"(skein_coordinator_refusals_total{call="Heartbeat",code="failed_precondition"})"),
      1);
  freezes->WaitForOutput("(joined again as )");
  EXPECT_THAT(freezes->Output(), HasSubstr("is stale; join again"));
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->expirations(), 1u);

  // Its next generation: the current policy comes before its first fragment that counts. It may join twice, where the
  // learner refuses its old one after the coordinator has.
  std::vector<HistoryEvent> history;
  HistoryEvent joined;
  const auto first_fragment = [&] {
    return std::find_if(history.begin(), history.end(), [&](const HistoryEvent& event) {
      return event.event == "batch" && event.Text("actor") == joined.Text("member") &&
             event.Text("result") == "accepted";
    });
  };
  ASSERT_TRUE(WaitUntil(
      [&] {
        history = cluster.History();
        joined = Select(history, "join").back();
        return first_fragment() != history.end();
      },
      absl::Minutes(1), absl::Milliseconds(100)));
  EXPECT_EQ(joined.Number("member_pid"), static_cast<uint64_t>(freezes->pid()));
  uint64_t current = 0;  // The newest that anybody's fragment was made with when it joined.
  // The newest that it had been sent when its first fragment was accepted: one that waited for it while it was stopped
  // came under its old membership.
  uint64_t its_own = 0;
  for (const HistoryEvent& event : history) {
    if (event.event == "batch" && event.seconds < joined.seconds) {
      current = std::max(current, event.Number("policy_version"));
    }
    const std::string actor = event.Text("actor");
    if (event.event == "policy" && (actor == member || actor == joined.Text("member")) &&
        event.seconds < first_fragment()->seconds) {
      its_own = std::max(its_own, event.Number("version"));
    }
  }
  EXPECT_GT(current, 0u);
  EXPECT_GE(its_own, current);
  EXPECT_GE(first_fragment()->Number("policy_version"), current);
}

TEST(FaultRow04, FourActorsJoinFourWhileTheyTrain) {
  // Steps of 2 ms that need no processor: an actor steps at most 500 env steps a second. Two ranks: they meet at a
  // barrier in each iteration.
  Cluster cluster({kEndless, "env.id=Latency-v0", "env.latency.step_ms=2", "rollout.num_envs=32", "ppo.epochs=1"});
  cluster.StartCoordinator();
  const auto rank_0 = cluster.StartRank(0, 2), rank_1 = cluster.StartRank(1, 2);
  std::vector<std::unique_ptr<Running>> actors;
  for (int i = 0; i < 4; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 4 && status.progress().env_steps() > 1024;
  }));
  const double before = BestRate(cluster, absl::Seconds(3), 0, absl::Seconds(3));
  const double begin = Now();
  for (int i = 0; i < 4; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus(LiveActors(8)));
  const std::vector<HistoryEvent> joins = Select(cluster.History(), "join");
  EXPECT_EQ(joins.size(), 10u);                          // The ranks are two.
  EXPECT_LE(joins.back().seconds - begin, 2 + kLoaded);  // With the start of four processes.
  EXPECT_GT(BestRate(cluster, absl::Seconds(3), 1.3 * before, absl::Seconds(40)), 1.3 * before);
  // All eight have work, and no barrier generation was entered twice: the cluster checks its history at its end.
  EXPECT_TRUE(WaitUntil(
      [&] {
        std::set<std::string> served;
        for (const HistoryEvent& fragment : Select(cluster.History(), "batch")) served.insert(fragment.Text("actor"));
        return served.size() == 8;
      },
      absl::Minutes(1), absl::Milliseconds(200)));
  int barriers = 0;
  for (const HistoryEvent& barrier : Select(cluster.History(), "barrier")) barriers += barrier.seconds > begin ? 1 : 0;
  EXPECT_GE(barriers, 10);
}

TEST(FaultRow05, WithoutActorsTheLearnerWaitsAndGoesOnByItself) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  std::vector<std::unique_ptr<Running>> actors;
  for (int i = 0; i < 2; ++i) actors.push_back(cluster.StartActor());
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return LiveMembers(status, "actor") == 2 && status.progress().env_steps() > 20000;
  }));
  actors[0]->Signal(SIGTERM);
  actors[1]->Kill();
  EXPECT_EQ(actors[0]->WaitForEnd(absl::Seconds(5)), 0);
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
  const double waiting = Now();
  ASSERT_TRUE(WaitUntil([&] { return Now() >= waiting + 60; }, absl::Minutes(2), absl::Milliseconds(100)));
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_WAITING_FOR_DATA);
  EXPECT_EQ(status->progress().env_steps(), env_steps);
  EXPECT_LE(learner_memory(*status), memory + (4 << 20));
  EXPECT_FALSE(cluster.learner().ended());

  const auto late = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& now) {
    return now.state() == v1::RUN_STATE_TRAINING && now.progress().env_steps() >= env_steps + 10000;
  }));
}

}  // namespace
}  // namespace skein
