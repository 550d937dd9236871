// SPDX-License-Identifier: Apache-2.0
// Policies with a memory, trained by real processes: their states travel in tickets, so nothing but seed and
// configuration decides what is learned.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

// 20 iterations of two fragments of each env group, with episodes of 68 steps, so that most fragments begin within one.
constexpr char kDone[] = "checkpoints/step_000000040960/DONE";

class MemoryRuns : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train",
                                          "--config",
                                          "configs/repeat_previous_ppo.yaml",
                                          "--runs-dir",
                                          runs_.path(),
                                          "--name",
                                          "run",
                                          "--steps",
                                          "40960",
                                          "--set",
                                          "rollout.fragment_steps=64",
                                          "--set",
                                          "ppo.epochs=2",
                                          "--set",
                                          "checkpoint.interval_steps=10240",
                                          "--no-eval"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string run() const { return runs_.path() + "/run"; }

  std::string Finish(const std::vector<std::string>& more = {}) const {
    const Ended ended = RunToEnd("skein", Arguments(more));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + kDone));
    const v1::StepAccount account = Account(run());
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
    return Digest(run());
  }

  // What one runner without interruption gives; found once.
  static const std::string& Uninterrupted() {
    static const std::string* const digest = [] {
      class Once : public MemoryRuns {
        void TestBody() override {}
      };
      return new std::string(Once().Finish({"--actors", "1", "--runners", "1"}));
    }();
    return *digest;
  }

  std::unique_ptr<Running> StartAndWaitForCheckpoint(const std::vector<std::string>& more = {}) const {
    auto skein = std::make_unique<Running>("skein", Arguments(more));
    EXPECT_TRUE(WaitUntil([&] { return skein->ended() || !NewestCheckpoint(run()).empty(); }, absl::Minutes(2)));
    EXPECT_FALSE(std::filesystem::exists(run() + "/" + kDone)) << "ended too early";
    return skein;
  }

  void FinishThoughAnActorIsKilled(const std::vector<std::string>& more) const {
    const auto skein = StartAndWaitForCheckpoint(more);
    const auto actor = FindChild(skein->pid(), "skein-actor");
    ASSERT_TRUE(actor);
    kill(*actor, SIGKILL);
    EXPECT_EQ(skein->WaitForEnd(), 0);
    EXPECT_THAT(skein->Output(), HasSubstr("actors restarted: 1"));
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + kDone));
    const v1::StepAccount account = Account(run());
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  }

  static std::vector<std::string> With(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const ScratchFolder runs_;
};

TEST_F(MemoryRuns, OtherActorsTakeTheTicketsOverAndChangeNothing) {
  EXPECT_EQ(Finish({"--actors", "2", "--runners", "2"}), Uninterrupted());
}

TEST_F(MemoryRuns, AStopWithinEpisodesChangesNothing) {
  const auto skein = StartAndWaitForCheckpoint();
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(60)), 0);
  EXPECT_EQ(Finish({"--runners", "1"}), Uninterrupted());
}

TEST_F(MemoryRuns, AKilledActorsFragmentsLeaveNothingBehind) {
  FinishThoughAnActorIsKilled({"--actors", "1", "--runners", "2"});
  EXPECT_EQ(Digest(run()), Uninterrupted());
}

TEST_F(MemoryRuns, OverlappedOtherActorsAndAKilledOneChangeNothing) {
  const std::vector<std::string> mode = {"--set", "sync.mode=overlapped"};
  const std::string digest = Finish(With(mode, {"--actors", "1", "--runners", "1"}));
  EXPECT_NE(digest, Uninterrupted()) << "its policies are one update behind";
  std::filesystem::remove_all(run());
  EXPECT_EQ(Finish(With(mode, {"--actors", "2", "--runners", "2"})), digest);
  std::filesystem::remove_all(run());
  FinishThoughAnActorIsKilled(With(mode, {"--actors", "1", "--runners", "2"}));
  EXPECT_EQ(Digest(run()), digest);
}

// Which policy collects a fragment depends on time, and how far the environments are at the end; so a digest says
// nothing. If no update changes the policy, and there is one env group, all runs train on the same steps, and Adam's
// averages are made of these.
TEST_F(MemoryRuns, AsyncAKilledActorsSuccessorGoesOnWithTheSameSteps) {
  std::vector<std::string> mode;
  for (const char* setting : {"sync.mode=async", "sync.max_policy_lag=1000", "ppo.lr=1e-30", "rollout.num_envs=8",
                              "rollout.fragment_steps=16"}) {
    mode.insert(mode.end(), {"--set", setting});
  }
  const auto averages = [&] {
    EXPECT_EQ(Account(run()).trained(), 40960u);
    std::ifstream file(NewestCheckpoint(run()) + "/optimizer.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Finish(With(mode, {"--actors", "1", "--runners", "1"}));
  const std::string of_one = averages();
  EXPECT_GT(of_one.size(), 10000u);
  std::filesystem::remove_all(run());
  FinishThoughAnActorIsKilled(With(mode, {"--actors", "1", "--runners", "1"}));
  EXPECT_TRUE(averages() == of_one);
}

TEST_F(MemoryRuns, OnDeviceAStopWithinEpisodesChangesNothing) {
  const std::vector<std::string> mode = {"--set", "sync.mode=on_device",     "--set", "env.id=CartPole-v1",
                                         "--set", "rollout.fragment_steps=0"};
  const std::string digest = Finish(mode);
  std::filesystem::remove_all(run());
  const auto skein = StartAndWaitForCheckpoint(mode);
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(60)), 0);
  EXPECT_EQ(Finish(mode), digest);
}

TEST_F(MemoryRuns, ASeparateCriticAndShortSequencesChangeNothingOfThis) {
  const std::vector<std::string> settings = {
      "--set", "model.memory=lstm",        "--set", "model.critic_memory=separate",
      "--set", "model.shared_trunk=false", "--set", "ppo.sequence_length=48",
      "--set", "ppo.burn_in=16",           "--set", "ppo.sequence_state=stored",
      "--set", "rollout.fragment_steps=32"};
  const auto skein = StartAndWaitForCheckpoint(With(settings, {"--actors", "2", "--runners", "2"}));
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(60)), 0);
  const std::string digest = Finish(With(settings, {"--runners", "1"}));
  std::filesystem::remove_all(run());
  EXPECT_EQ(Finish(With(settings, {"--actors", "1", "--runners", "2"})), digest);
}

TEST_F(MemoryRuns, StatusKnowsTheMemory) {
  const std::string port = absl::StrCat(FreePort());
  Running train("skein", {"train", "--config", "configs/repeat_previous_ppo.yaml", "--steps", "1000000000",
                          "--runs-dir", runs_.path(), "--name", "run", "--runners", "1", "--port", port, "--no-eval"});
  train.WaitForOutput("(training  )");
  const std::string address = absl::StrCat("127.0.0.1:", port);
  const Ended table = RunToEnd("skein", {"status", "--address", address});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("memory gru 64"));
  const Ended json = RunToEnd("skein", {"status", "--address", address, "--json"});
  const nlohmann::json status = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(status.is_object()) << json.err;
  EXPECT_EQ(status["progress"]["memory"], "gru");
  EXPECT_EQ(status["progress"]["memory_size"], 64);
  train.Signal(SIGTERM);
  EXPECT_EQ(train.WaitForEnd(), 0);
}

TEST_F(MemoryRuns, AsyncAndTwoRanksTrainToTheTarget) {
  const auto fresh = [&](const std::vector<std::string>& more) {
    std::filesystem::remove_all(run());
    Finish(more);
    EXPECT_EQ(Account(run()).trained(), 40960u);
  };
  fresh({"--set", "sync.mode=async", "--set", "rollout.fragment_steps=16"});
  fresh({"--learners", "2", "--actors", "2"});
}

// As TwoLearnWhatOneLearns of ranks_test.cc: the sums have another order, and a single action may show it later.
TEST_F(MemoryRuns, TwoRanksLearnWhatOneLearns) {
  std::string digest;  // Of the last run.
  const auto iterations = [&](const std::string& learners, const std::string& memory, const std::string& actors) {
    std::filesystem::remove_all(run());
    const Ended ended = RunToEnd(
        "skein", Arguments({"--learners", learners, "--actors", actors, "--runners", actors, "--envs-per-runner", "4",
                            "--set", "total_steps=4096", "--set", "model.memory=" + memory}));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    digest = Digest(run());
    std::vector<nlohmann::json> lines;
    std::ifstream metrics(run() + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  };
  for (const char* memory : {"gru", "lstm"}) {
    const auto of_one = iterations("1", memory, "1"), of_two = iterations("2", memory, "2");
    ASSERT_EQ(of_one.size(), 2);
    ASSERT_EQ(of_two.size(), 2);
    for (int i = 0; i < 2; ++i) {
      for (const char* figure : {"policy_loss", "value_loss", "entropy", "grad_norm", "explained_variance"}) {
        const double one = of_one[i].at("update").at(figure), two = of_two[i].at("update").at(figure);
        EXPECT_NEAR(one, two, 1e-3 * (1 + std::abs(one))) << memory << ": " << figure << " of iteration " << i + 1;
      }
    }
    const std::string of_two_actors = digest;
    iterations("2", memory, "4");
    EXPECT_EQ(digest, of_two_actors) << memory << ": as many ranks give the same bits";
  }
}

TEST_F(MemoryRuns, TheAlgorithmsThatTrainNoneSaySo) {
  const Ended ended = RunToEnd("skein", {"train", "--config", "configs/cartpole_reinforce.yaml", "--runs-dir",
                                         runs_.path(), "--set", "model.memory=gru"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.err, HasSubstr("model.memory must be none with reinforce, which does not train one"));
}

}  // namespace
}  // namespace skein
