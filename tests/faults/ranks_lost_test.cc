// SPDX-License-Identifier: Apache-2.0
// Learner ranks that are killed, and come back.
#include <csignal>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/faults/ranks.h"
#include "tests/integration/run_files.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// The child of `parent` that was started with this variable.
std::optional<pid_t> FindProcess(pid_t parent, const std::string& variable) {
  const std::string children = ReadFile(absl::StrCat("/proc/", parent, "/task/", parent, "/children")).value_or("");
  for (const auto word : absl::StrSplit(children, ' ', absl::SkipWhitespace())) {
    const std::string environment = ReadFile(absl::StrCat("/proc/", word, "/environ")).value_or("");
    for (const auto one : absl::StrSplit(environment, '\0')) {
      int pid = 0;
      if (one == variable && absl::SimpleAtoi(word, &pid)) return pid;
    }
  }
  return std::nullopt;
}

// The lease is 2 s.
constexpr absl::Duration kBarrier = absl::Seconds(5), kCollective = absl::Seconds(10), kLease = absl::Seconds(2);
constexpr absl::Duration kTold = absl::Milliseconds(1500);  // Where `skein train` tells the coordinator.
constexpr absl::Duration kLoaded = absl::Seconds(2);        // That a loaded machine may be late.

// The other one has an error in time, and goes on from what it has; a successor is taken in, and both have the same
// parameters and a whole account.
void KillAndReplace(int lost, uint32_t choice) {
  ElasticRun run(1, kBarrier, kCollective);
  run.Start();
  std::mt19937 random = FaultRandom(choice);
  const uint64_t iterations = Choose(&random, 3, 8);
  SayChoice(absl::StrCat("rank ", lost, " is killed after ", iterations, " iterations"));
  ASSERT_TRUE(run.WaitForIterations(iterations));
  auto& victim = lost == 0 ? run.rank_0 : run.rank_1;
  Running& survivor = lost == 0 ? *run.rank_1 : *run.rank_0;
  const uint64_t env_steps = run.Progress().env_steps();
  const absl::Time killed = absl::Now();
  victim->Kill();
  survivor.WaitForOutput("(; the ranks meet again)", kCollective);  // An error before T is over.
  EXPECT_LT(absl::Now() - killed, kCollective);
  const std::string from = survivor.WaitForOutput("goes on at (\\d+) env steps with 1 of 2 ranks");
  EXPECT_LT(absl::Now() - killed, kCollective + kLease + kLoaded);
  EXPECT_GE(std::strtoull(from.c_str(), nullptr, 10), env_steps);  // Nothing that was trained on is gone.
  ASSERT_TRUE(run.WaitForIterations(5));
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_ranks"), 1);
  EXPECT_GE(ElasticRun::Metric(survivor, "skein_learner_reformations_total"), 1);

  victim = run.StartRank(lost);
  survivor.WaitForOutput("goes on at \\d+ env steps with (2) of 2 ranks", absl::Seconds(60));
  run.ExpectEqualParameters();
  const double digest = ElasticRun::Digest(survivor);
  ASSERT_TRUE(run.WaitForIterations(5));
  run.ExpectEqualParameters(digest);
  EXPECT_EQ(ElasticRun::Metric(*victim, "skein_learner_ranks"), 2);
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_ranks"), 2);
  EXPECT_EQ(ElasticRun::Metric(survivor, "skein_learner_env_steps_imbalance"), 0);
  run.StopAndExpectClosedAccounts({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeIterations();
}

TEST(FaultRow08, AfterRankOneIsKilledRankZeroGoesOnAndTakesItsSuccessorIn) { KillAndReplace(1, 8); }

TEST(FaultRow08, AfterRankZeroIsKilledRankOneLeadsAndTakesItsSuccessorIn) { KillAndReplace(0, 88); }

TEST(FaultRow08, UnderSkeinTrainALostRankIsStartedAgainAndTheRunReachesItsTarget) {
  const ScratchFolder runs;
  Running skein("skein", {"train",
                          "--config",
                          "configs/cartpole_ppo.yaml",
                          "--learners",
                          "2",
                          "--runners",
                          "2",
                          "--runs-dir",
                          runs.path(),
                          "--name",
                          "run",
                          "--no-eval",
                          "--steps",
                          "61440",
                          "--set",
                          "learner.min_ranks=1",
                          "--set",
                          "coordinator.lease_seconds=2",
                          "--set",
                          "coordinator.heartbeat_seconds=0.2",
                          "--set",
                          "checkpoint.interval_steps=10240"});
  const std::string folder = runs.path() + "/run";
  ASSERT_TRUE(WaitUntil([&] { return skein.ended() || !NewestCheckpoint(folder).empty(); }, absl::Minutes(1)));
  const auto learner = FindChild(skein.pid(), "skein-learner");
  ASSERT_TRUE(learner);
  kill(*learner, SIGKILL);
  EXPECT_EQ(skein.WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(skein.Output(), HasSubstr("was ended by signal 9"));
  const v1::StepAccount account = Account(folder);
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), 61440u);
  EXPECT_EQ(account.pending(), 0u);
}

// The lease is 20 s; `skein train` tells the coordinator at once that the rank is gone.
void KillUnderSkeinTrain(uint32_t rank) {
  const ScratchFolder runs, history;
  Running skein("skein",
                {"train", "--config", "configs/cartpole_ppo.yaml", "--learners", "2", "--runners", "2", "--runs-dir",
                 runs.path(), "--name", "run", "--no-eval", "--steps", "1000000000", "--set", "learner.min_ranks=1",
                 "--set", "coordinator.lease_seconds=20"},
                {"SKEIN_HISTORY=" + history.path()});
  const std::string other = absl::StrCat(runs.path(), "/run/log/learner-", 1 - rank, ".log");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(runs.path() + "/run").empty(); }, absl::Minutes(1)));
  const auto victim = FindProcess(skein.pid(), absl::StrCat("RANK=", rank));
  ASSERT_TRUE(victim);
  // How often the other rank has begun, with both ranks or alone.
  const auto begun = [&] {
    const std::string log = ReadFile(other).value_or("");
    int count = 0;
    for (size_t at = log.find("env steps with "); at != std::string::npos; at = log.find("env steps with ", at + 1)) {
      ++count;
    }
    return count;
  };
  const int before = begun();
  const absl::Duration killed = MonotonicNow();
  kill(*victim, SIGKILL);
  // It goes on alone, or with the victim's successor if that is quick.
  EXPECT_TRUE(WaitUntil([&] { return begun() > before; }, absl::Seconds(10), absl::Milliseconds(5)));
  const absl::Duration took = MonotonicNow() - killed;
  // Whatever the load, no lease has ended: `skein train` has told the coordinator.
  absl::Duration told = absl::InfiniteDuration();
  const auto left = [&] {
    for (const HistoryEvent& event : ReadHistory(history.path())) {
      EXPECT_NE(event.event, "expire") << event.Text("member");
      if (event.event == "leave" && event.Number("member_pid") == static_cast<uint64_t>(*victim)) {
        told = absl::Seconds(event.seconds) - killed;
      }
    }
    return told < absl::InfiniteDuration();
  };
  EXPECT_TRUE(WaitUntil(left, absl::Seconds(5), absl::Milliseconds(20)));
  SayChoice(absl::StrFormat("the coordinator was told %.2f s, rank %d went on %.2f s after the other was killed",
                            absl::ToDoubleSeconds(told), 1 - rank, absl::ToDoubleSeconds(took)));
  EXPECT_LT(took, kTold + kLoaded);
  EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(ReadFile(other).value_or(""), "env steps with 2 of 2 ranks"); },
                        absl::Seconds(15), absl::Milliseconds(20)));
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(), 0);
}

TEST(FaultRow40, AKilledRankOneOfSkeinTrainIsNotWaitedForUntilItsLeaseEnds) { KillUnderSkeinTrain(1); }

TEST(FaultRow40, AKilledRankZeroOfSkeinTrainIsNotWaitedForUntilItsLeaseEnds) { KillUnderSkeinTrain(0); }

TEST(FaultRow09, WithFewerThanTheLeastNumberTheRunIsBlockedUntilTheMissingOneReturns) {
  ElasticRun run(0, kBarrier, kCollective);  // 0: all.
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.rank_1->Kill();
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_BLOCKED));
  const v1::RunProgress blocked = run.Progress();
  EXPECT_EQ(blocked.last_error(), "learner rank 1 is missing: 1 of 2 is here, learner.min_ranks is 2");
  EXPECT_FALSE(run.rank_0->ended());
  const double digest = ElasticRun::Digest(*run.rank_0);
  EXPECT_GT(digest, 0);

  // Both go on from where rank 0 stood: before there are data they have the parameters that it had.
  run.SignalActors(SIGSTOP);
  run.rank_1 = run.StartRank(1);
  const std::string steps = run.rank_1->WaitForOutput("goes on at (\\d+) env steps with 2 of 2 ranks");
  // Progress is told after the ranks have added up an iteration, and rank 1 may have died in there.
  EXPECT_THAT(std::strtoull(steps.c_str(), nullptr, 10),
              AnyOf(blocked.env_steps(), blocked.env_steps() + ElasticRun::kIterationSteps));
  EXPECT_EQ(run.rank_0->WaitForOutput("goes on at (\\d+) env steps with 2 of 2 ranks"), steps);
  for (const Running* rank : {run.rank_0.get(), run.rank_1.get()}) {
    EXPECT_TRUE(WaitUntil([&] { return ElasticRun::Digest(*rank) == digest; }, absl::Seconds(10)));
  }
  run.SignalActors(SIGCONT);
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_TRAINING));
  ASSERT_TRUE(run.WaitForIterations(5));
  EXPECT_EQ(run.Progress().last_error(), "");
  run.ExpectEqualParameters(digest);
  run.StopAndExpectClosedAccounts({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeIterations();
}

// Nobody has a state in memory then.
TEST(FaultRow09, AfterBothAreKilledTheRunIsBlockedUntilBothAreBackWithTheSameCheckpoint) {
  ElasticRun run(0, kBarrier, kCollective, 2 * ElasticRun::kIterationSteps);
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.SignalActors(SIGSTOP);
  run.rank_0->Kill();
  run.rank_1->Kill();
  const nlohmann::json manifest = ReadJson(NewestCheckpoint(run.cluster.run_folder()) + "/manifest.json");
  ASSERT_TRUE(run.cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.expirations() >= 2; }));

  run.rank_1 = run.StartRank(1);
  ASSERT_TRUE(run.cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return status.progress().last_error() == "learner rank 0 is missing: 1 of 2 is here, learner.min_ranks is 2";
  }));
  EXPECT_EQ(run.Progress().state(), v1::RUN_STATE_BLOCKED);
  run.rank_0 = run.StartRank(0);
  const std::string steps = std::to_string(manifest.at("env_steps").get<uint64_t>());
  double digest = 0;
  for (Running* rank : {run.rank_0.get(), run.rank_1.get()}) {
    EXPECT_EQ(rank->WaitForOutput("resumed from \\S+ at (\\d+) env steps"), steps);
  }
  EXPECT_TRUE(WaitUntil(
      [&] {
        digest = ElasticRun::Digest(*run.rank_0);
        return digest > 0 && ElasticRun::Digest(*run.rank_1) == digest;
      },
      absl::Seconds(20), absl::Milliseconds(20)));
  run.SignalActors(SIGCONT);
  const uint64_t target = manifest.at("env_steps").get<uint64_t>() + 5 * ElasticRun::kIterationSteps;
  ASSERT_TRUE(run.cluster.WaitForStatus(
      [&](const v1::StatusResponse& status) { return status.progress().env_steps() >= target; }));
  run.ExpectEqualParameters(digest);
  run.StopAndExpectClosedAccounts({run.rank_0.get(), run.rank_1.get()});
  run.ExpectWholeIterations();
}

TEST(FaultRow09, ABlockedRunThatIsStoppedSavesWhereItIs) {
  ElasticRun run(2, kBarrier, kCollective);
  run.Start();
  ASSERT_TRUE(run.WaitForIterations(5));
  run.rank_1->Kill();
  ASSERT_TRUE(run.WaitForState(v1::RUN_STATE_BLOCKED));
  const uint64_t env_steps = run.Progress().env_steps();
  run.StopAndExpectClosedAccounts({run.rank_0.get()});
  // Or one iteration further: progress is told after the ranks have added it up, and rank 1 may have died in there.
  EXPECT_THAT(
      NewestCheckpoint(run.cluster.run_folder()),
      AnyOf(HasSubstr(std::to_string(env_steps)), HasSubstr(std::to_string(env_steps + ElasticRun::kIterationSteps))));
}

}  // namespace
}  // namespace skein
