// SPDX-License-Identifier: Apache-2.0
// In on_policy mode nothing but seed and configuration decides what is learned: not who collects, not what is
// interrupted.
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

// 40 iterations, a checkpoint after each tenth.
constexpr char kSteps[] = "40960";
constexpr char kInterval[] = "checkpoint.interval_steps=10240";
constexpr char kDone[] = "checkpoints/step_000000040960/DONE";

class Resume : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train",      "--config",   "configs/cartpole_ppo.yaml",
                                          "--runs-dir", runs_.path(), "--name",
                                          "run",        "--steps",    kSteps,
                                          "--set",      kInterval,    "--no-eval"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string run() const { return runs_.path() + "/run"; }

  // Trains to the target in one go, or the rest of the way. Returns the last checkpoint's digest and the episodes of
  // which the run reports the mean.
  std::string Finish(const std::vector<std::string>& more = {}) const {
    const Ended ended = RunToEnd("skein", Arguments(more));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + kDone));
    const v1::StepAccount account = Account(run());
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
    return Outcome();
  }

  std::string Outcome() const {
    return Digest(run()) + ReadJson(run() + "/checkpoints/latest/manifest.json")["last_episodes"].dump();
  }

  // What training without interruption gives; found once.
  static const std::string& Uninterrupted() {
    static const std::string* const digest = [] {
      class Once : public Resume {
        void TestBody() override {}
      };
      return new std::string(Once().Finish());
    }();
    return *digest;
  }

  // Starts training and waits for its first checkpoint: a quarter of the way.
  std::unique_ptr<Running> StartAndWaitForCheckpoint(const std::vector<std::string>& more = {}) const {
    auto skein = std::make_unique<Running>("skein", Arguments(more));
    EXPECT_TRUE(WaitUntil([&] { return skein->ended() || !NewestCheckpoint(run()).empty(); }, absl::Minutes(1)));
    return skein;
  }

  void ExpectUnfinished() const { EXPECT_FALSE(std::filesystem::exists(run() + "/" + kDone)) << "ended too early"; }

  const ScratchFolder runs_;
};

TEST_F(Resume, TheSameSeedAndLayoutGiveTheSameDigest) {
  EXPECT_EQ(Finish(), Uninterrupted());
  EXPECT_THAT(Uninterrupted(), testing::MatchesRegex("[0-9a-f]+\\{.*\"returns\":\\[[0-9].*"));
}

TEST_F(Resume, AnotherSeedGivesAnother) { EXPECT_NE(Finish({"--seed", "2"}), Uninterrupted()); }

TEST_F(Resume, OneRunnerGivesTheSameAsTwo) { EXPECT_EQ(Finish({"--actors", "1", "--runners", "1"}), Uninterrupted()); }

TEST_F(Resume, TwoActorsGiveTheSameAsOne) { EXPECT_EQ(Finish({"--actors", "2", "--runners", "2"}), Uninterrupted()); }

TEST_F(Resume, AStopAndAnotherLayoutChangeNothing) {
  const auto skein = StartAndWaitForCheckpoint();
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(20)), 0);
  EXPECT_THAT(skein->Output(), HasSubstr("the same command goes on from the checkpoint"));
  ExpectUnfinished();
  EXPECT_EQ(Finish({"--runners", "1"}), Uninterrupted());
}

TEST_F(Resume, SessionsThatStopAtAStepChangeNothing) {
  // The iterations of 1024 steps that pass 10,000 and 20,480. The learning rate still falls to 0 at 40,960.
  for (const auto& [stop, reached] : {std::pair{"10000", "10240"}, std::pair{"20480", "20480"}}) {
    const Ended ended = RunToEnd("skein", Arguments({"--stop-at-step", stop}));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("env steps, as --stop-at-step says"));
    EXPECT_THAT(NewestCheckpoint(run()), HasSubstr(reached));
  }
  ExpectUnfinished();
  EXPECT_EQ(Finish(), Uninterrupted());
}

TEST_F(Resume, AKilledLearnerChangesNothing) {
  const auto skein = StartAndWaitForCheckpoint();
  const auto learner = FindChild(skein->pid(), "skein-learner");
  ASSERT_TRUE(learner);
  kill(*learner, SIGKILL);
  EXPECT_NE(skein->WaitForEnd(), 0);
  EXPECT_THAT(skein->Output(), HasSubstr("learner was ended by signal 9"));
  ExpectUnfinished();
  EXPECT_EQ(Finish(), Uninterrupted());
}

TEST_F(Resume, AKilledSkeinChangesNothing) {
  const auto skein = StartAndWaitForCheckpoint();
  skein->Kill();
  ExpectUnfinished();
  EXPECT_EQ(Finish(), Uninterrupted());  // Its children end by themselves; this waits for them.
}

TEST_F(Resume, AKilledActorIsReplacedAndChangesNothing) {
  // The only one: the run cannot end before there is another.
  const auto skein = StartAndWaitForCheckpoint({"--actors", "1", "--runners", "2"});
  const auto actor = FindChild(skein->pid(), "skein-actor");
  ASSERT_TRUE(actor);
  kill(*actor, SIGKILL);
  EXPECT_EQ(skein->WaitForEnd(), 0);
  EXPECT_THAT(skein->Output(), HasSubstr("actors restarted: 1"));
  EXPECT_EQ(Outcome(), Uninterrupted());
  const v1::StepAccount account = Account(run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
}

TEST_F(Resume, AsyncModeGoesOnWhereEveryGroupWas) {
  const std::vector<std::string> async = {"--set", "sync.mode=async", "--set", "rollout.fragment_steps=16"};
  const auto skein = StartAndWaitForCheckpoint(async);
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(20)), 0);
  ExpectUnfinished();
  Finish(async);
  const v1::StepAccount account = Account(run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), 40960u);
  // What was under way at the two ends is lost; next to nothing is too old.
  EXPECT_LT(account.stale(), account.trained() / 4);
}

TEST_F(Resume, OverlappedModeFinishesToo) {
  Finish({"--set", "sync.mode=overlapped"});
  EXPECT_EQ(Account(run()).trained(), 40960u);
}

}  // namespace
}  // namespace skein
