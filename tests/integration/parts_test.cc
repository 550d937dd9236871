// SPDX-License-Identifier: Apache-2.0
// learner.gradient_parts: any number of learner processes trains the same bits.
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

// 16 environments in four groups, 20 iterations, a checkpoint after every fourth. No learner goes on with half of its
// data.
constexpr char kDone[] = "checkpoints/step_000000040960/DONE";

class Parts : public testing::Test {
 protected:
  std::vector<std::string> Arguments(int learners, int parts, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train",
                                          "--config",
                                          "configs/repeat_previous_ppo.yaml",
                                          "--learners",
                                          absl::StrCat(learners),
                                          "--actors",
                                          absl::StrCat(learners),
                                          "--runners",
                                          absl::StrCat(learners),
                                          "--runs-dir",
                                          runs_.path(),
                                          "--name",
                                          "run",
                                          "--no-eval",
                                          "--steps",
                                          "40960",
                                          "--set",
                                          absl::StrCat("learner.gradient_parts=", parts)};
    for (const char* setting : {"rollout.envs_per_runner=4", "ppo.epochs=2", "model.normalize_observations=true",
                                "checkpoint.interval_steps=8192", "learner.shortfall_seconds=600"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    for (const std::string& setting : more) arguments.insert(arguments.end(), {"--set", setting});
    return arguments;
  }
  std::string run() const { return runs_.path() + "/run"; }

  // The digest of a whole run.
  std::string Train(int learners, int parts, const std::vector<std::string>& more = {}) const {
    std::filesystem::remove_all(run());
    return Finish(learners, parts, more);
  }
  std::string Finish(int learners, int parts, const std::vector<std::string>& more = {}) const {
    const Ended ended = RunToEnd("skein", Arguments(learners, parts, more));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_TRUE(std::filesystem::exists(run() + "/" + kDone));
    return Digest(run());
  }

  std::unique_ptr<Running> StartAndWaitForCheckpoint(int learners, int parts,
                                                     const std::vector<std::string>& more = {}) const {
    std::filesystem::remove_all(run());
    auto skein = std::make_unique<Running>("skein", Arguments(learners, parts, more));
    EXPECT_TRUE(WaitUntil([&] { return skein->ended() || !NewestCheckpoint(run()).empty(); }, absl::Minutes(1)));
    EXPECT_FALSE(std::filesystem::exists(run() + "/" + kDone)) << "ended too early";
    return skein;
  }

  const ScratchFolder runs_;
};

TEST_F(Parts, OneLearnerAndTwoHaveOneDigest) {
  for (const char* memory : {"none", "gru", "lstm"}) {
    const std::vector<std::string> settings = {absl::StrCat("model.memory=", memory)};
    const std::string of_one = Train(1, 2, settings);
    EXPECT_EQ(Train(2, 2, settings), of_one) << memory;
    EXPECT_EQ(Train(2, 0, settings), of_one) << memory << ": two parts are what two learners always did";
  }
}

TEST_F(Parts, OverlappedOneLearnerAndTwoHaveOneDigest) {
  for (const char* memory : {"none", "gru"}) {
    const std::vector<std::string> settings = {absl::StrCat("model.memory=", memory), "sync.mode=overlapped"};
    EXPECT_EQ(Train(2, 2, settings), Train(1, 2, settings)) << memory;
  }
}

TEST_F(Parts, OneLearnerTwoAndThreeHaveOneDigestWithFourParts) {
  const std::string of_one = Train(1, 4);
  EXPECT_EQ(Train(2, 4), of_one);
  EXPECT_EQ(Train(3, 4), of_one);  // The first has two of the parts.
}

TEST_F(Parts, OneLearnerGoesOnWhereTwoStoppedAndChangesNothing) {
  const std::string uninterrupted = Train(1, 2);
  const auto skein = StartAndWaitForCheckpoint(2, 2);
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(1)), 0);
  EXPECT_EQ(Finish(1, 2), uninterrupted);
}

TEST_F(Parts, ALostLearnersPartsAreTakenOverAndChangeNothing) {
  const std::string uninterrupted = Train(1, 2);
  const auto skein = StartAndWaitForCheckpoint(2, 2, {"learner.min_ranks=1"});
  const auto learner = FindChild(skein->pid(), "skein-learner");
  ASSERT_TRUE(learner);
  kill(*learner, SIGKILL);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(skein->Output(), HasSubstr("was ended by signal 9"));
  EXPECT_EQ(Digest(run()), uninterrupted);
}

TEST_F(Parts, MoreLearnersThanPartsAreRefused) {
  const Ended ended = RunToEnd("skein", Arguments(3, 2, {}));
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("learner.gradient_parts: got 2 for 3 learners, want a part for each; "
                                               "set learner.gradient_parts to 3 or more, or start 2 or fewer"));
}

}  // namespace
}  // namespace skein
