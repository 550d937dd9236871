// SPDX-License-Identifier: Apache-2.0
// Several learner processes that train one policy.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::SizeIs;

// 20 iterations, a checkpoint after each fifth.
constexpr char kSteps[] = "20480";
constexpr char kInterval[] = "checkpoint.interval_steps=5120";
constexpr char kDone[] = "checkpoints/step_000000020480/DONE";

class Ranks : public testing::Test {
 protected:
  std::vector<std::string> Arguments(int learners, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train",
                                          "--config",
                                          "configs/cartpole_ppo.yaml",
                                          "--learners",
                                          absl::StrCat(learners),
                                          "--runners",
                                          "2",
                                          "--runs-dir",
                                          runs_.path(),
                                          "--name",
                                          "run",
                                          "--no-eval",
                                          "--steps",
                                          kSteps,
                                          "--set",
                                          kInterval};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string run() const { return runs_.path() + "/run"; }

  void Finish(int learners) const {
    const Ended ended = RunToEnd("skein", Arguments(learners));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    ExpectFinished();
  }

  void ExpectFinished() const {
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + kDone));
    const v1::StepAccount account = Account(run());
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
    EXPECT_EQ(account.pending(), 0u);
    EXPECT_EQ(account.trained(), 20480u);
  }

  // Starts training and waits for its first checkpoint: a quarter of the way.
  std::unique_ptr<Running> StartAndWaitForCheckpoint(int learners) const {
    auto skein = std::make_unique<Running>("skein", Arguments(learners));
    EXPECT_TRUE(WaitUntil([&] { return skein->ended() || !NewestCheckpoint(run()).empty(); }, absl::Minutes(1)));
    return skein;
  }

  // Stops `learners` of them on the way and lets `then` finish.
  void ResumeWith(int learners, int then) const {
    const auto skein = StartAndWaitForCheckpoint(learners);
    skein->Signal(SIGTERM);
    EXPECT_EQ(skein->WaitForEnd(absl::Seconds(30)), 0);
    EXPECT_THAT(skein->Output(), HasSubstr("the same command goes on from the checkpoint"));
    ASSERT_FALSE(std::filesystem::exists(run() + "/" + kDone)) << "ended too early";
    Finish(then);
  }

  std::vector<nlohmann::json> Iterations() const {
    std::vector<nlohmann::json> iterations;
    std::ifstream metrics(run() + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) iterations.push_back(nlohmann::json::parse(line));
    return iterations;
  }

  const ScratchFolder runs_;
};

TEST_F(Ranks, TwoTrainToTheTargetAlsoWithinATaskOfALauncher) {
  // The place that a launcher gave to skein itself is not that of its learners.
  Running skein("skein", Arguments(2), {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=3", "SLURM_PROCID=3"});
  EXPECT_EQ(skein.WaitForEnd(absl::Minutes(2)), 0);
  ExpectFinished();
  EXPECT_THAT(Iterations(), SizeIs(20));  // Rank 0 alone writes them: 20480 / 1024.
  for (const char* log : {"/log/learner-0.log", "/log/learner-1.log", "/log/actor-1.log", "/log/actor-2.log"}) {
    EXPECT_TRUE(std::filesystem::exists(run() + log)) << log;
  }
}

TEST_F(Ranks, TwoLearnWhatOneLearns) {
  // Two iterations: later ones are collected with policies that differ by rounding, which a single action can show.
  const std::vector<std::string> short_run = {"--set", "total_steps=2048"};
  ASSERT_EQ(RunToEnd("skein", Arguments(1, short_run)).code, 0);
  const std::vector<nlohmann::json> of_one = Iterations();
  std::vector<std::string> again = short_run;
  again.insert(again.end(), {"--resume", "never"});
  ASSERT_EQ(RunToEnd("skein", Arguments(2, again)).code, 0);
  const std::vector<nlohmann::json> of_two = Iterations();
  ASSERT_THAT(of_one, SizeIs(2));
  ASSERT_THAT(of_two, SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    for (const char* figure : {"policy_loss", "value_loss", "entropy", "grad_norm", "explained_variance"}) {
      const double one = of_one[i].at("update").at(figure), two = of_two[i].at("update").at(figure);
      EXPECT_NEAR(one, two, 1e-3 * (1 + std::abs(one))) << figure << " of iteration " << i + 1;
    }
  }
}

TEST_F(Ranks, TwoTrainHalfCheetah) {
  const Ended ended =
      RunToEnd("skein", {"train", "--env", "HalfCheetah-v5", "--learners", "2", "--envs", "32", "--steps", "4096",
                         "--no-eval", "--set", "rollout.steps_per_iteration=2048", "--set", "ppo.minibatch_size=512",
                         "--runs-dir", runs_.path(), "--name", "run"});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_EQ(Account(run()).trained(), 4096u);
}

TEST_F(Ranks, OneGoesOnWhereTwoStopped) { ResumeWith(2, 1); }

TEST_F(Ranks, TwoGoOnWhereOneStopped) { ResumeWith(1, 2); }

// The first learner that is killed is that of rank 0.
TEST_F(Ranks, ADeadRankIsStartedAgainAndTheRunGoesOn) {
  const auto skein = StartAndWaitForCheckpoint(2);
  const auto learner = FindChild(skein->pid(), "skein-learner");
  ASSERT_TRUE(learner);
  kill(*learner, SIGKILL);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(skein->Output(), AnyOf(HasSubstr("starting again: learner-0 was ended by signal 9"),
                                     HasSubstr("starting again: learner-1 was ended by signal 9")));
  ExpectFinished();
}

TEST(RanksByHand, AsTorchrunStartsThemTrainToTheTarget) {
  Cluster cluster({absl::StrCat("total_steps=", kSteps)});
  cluster.StartCoordinator();
  const auto leader = cluster.StartRank(0, 2), other = cluster.StartRank(1, 2);
  const auto one = cluster.StartActor(), two = cluster.StartActor();
  EXPECT_EQ(leader->WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_EQ(other->WaitForEnd(), 0);
  EXPECT_EQ(one->WaitForEnd(), 0);
  EXPECT_EQ(two->WaitForEnd(), 0);
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_FINISHED);
  EXPECT_EQ(status->progress().account().trained(), 20480u);
}

// What the rank's page /digest shows.
std::string ParametersDigest(const Running& rank) {
  const int port = std::stoi(FirstMatch(rank.Output(), "learner listening data=\\S+ metrics=\\S+:(\\d+)"));
  return FirstMatch(HttpGet(port, "/digest").body, "([0-9a-f]{16})");
}

TEST(RanksByHand, TheirParametersAreEqualToTheBit) {
  Cluster cluster({"total_steps=1000000000", "coordinator.lease_seconds=60"});
  cluster.StartCoordinator();
  const auto leader = cluster.StartRank(0, 2), other = cluster.StartRank(1, 2);
  const auto one = cluster.StartActor(), two = cluster.StartActor();
  std::string before = "0000000000000000";
  uint64_t iterations = 0;
  for (int look = 0; look < 3; ++look) {
    ASSERT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
      const uint64_t now = status.progress().iteration();
      if (now < iterations + 5) return false;
      iterations = now;
      return true;
    }));
    // Without data both come to rest after the same update.
    one->Signal(SIGSTOP);
    two->Signal(SIGSTOP);
    std::string digest;
    EXPECT_TRUE(WaitUntil(
        [&] {
          digest = ParametersDigest(*leader);
          return !digest.empty() && digest == ParametersDigest(*other);
        },
        absl::Seconds(10), absl::Milliseconds(20)))
        << digest << " and " << ParametersDigest(*other);
    EXPECT_NE(digest, before);
    before = digest;
    one->Signal(SIGCONT);
    two->Signal(SIGCONT);
  }
}

TEST(RanksByHand, ARankWithoutActorsDoesNotHoldUpTheOther) {
  Cluster cluster({"total_steps=1000000000", "learner.shortfall_seconds=0.2"});
  cluster.StartCoordinator();
  const auto leader = cluster.StartRank(0, 2), other = cluster.StartRank(1, 2);
  const auto actor = cluster.StartActor();  // Feeds one of them at a time.
  EXPECT_TRUE(
      cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.progress().iteration() >= 10; }));
  EXPECT_FALSE(leader->ended());
  EXPECT_FALSE(other->ended());
  for (const auto* rank : {leader.get(), other.get()}) kill(rank->pid(), SIGTERM);
  EXPECT_EQ(leader->WaitForEnd(absl::Seconds(20)), 0);
  EXPECT_EQ(other->WaitForEnd(absl::Seconds(20)), 0);
}

TEST(RanksByHand, AHeadWithoutLearnersEndsWhenTheyHaveFinished) {
  const ScratchFolder runs;
  Running head("skein",
               {"head", "--config", "configs/cartpole_ppo.yaml", "--learners", "0", "--port", "0", "--http-port", "0",
                "--steps", "4096", "--runs-dir", runs.path(), "--name", "run", "--no-eval"});
  const std::string address = head.WaitForOutput("--coordinator (\\S+) --run-dir");
  const std::string folder = FirstMatch(head.Output(), "--run-dir (\\S+)");
  EXPECT_TRUE(std::filesystem::equivalent(folder, runs.path() + "/run"));
  Running learner("skein-learner", {"--coordinator", address, "--run-dir", folder});
  Running actor("skein", {"worker", "--address", address, "--runners", "1"});
  EXPECT_EQ(learner.WaitForEnd(), 0);
  EXPECT_EQ(actor.WaitForEnd(), 0);
  EXPECT_EQ(head.WaitForEnd(absl::Seconds(20)), 0);
  EXPECT_EQ(Account(folder).trained(), 4096u);
  EXPECT_THAT(head.Output(), HasSubstr("trained: 4,096 env steps"));
}

TEST(RanksByHand, APlaceThatCannotBeEndsWith64) {
  Running learner("skein-learner", {"--coordinator", "127.0.0.1:1", "--run-dir", "/nowhere"},
                  {"RANK=2", "WORLD_SIZE=2", "LOCAL_RANK=0"});
  EXPECT_EQ(learner.WaitForEnd(), 64);
  EXPECT_THAT(learner.Output(), HasSubstr("RANK"));
  Running port("skein-learner",
               {"--coordinator", "127.0.0.1:1", "--run-dir", "/nowhere", "--listen", "127.0.0.1:65535"},
               {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"});
  EXPECT_EQ(port.WaitForEnd(), 64);
  EXPECT_THAT(port.Output(), HasSubstr("--listen: port 65535 + local rank 1 = 65536, want 65535 at most"));
}

}  // namespace
}  // namespace skein
