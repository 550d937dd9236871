// SPDX-License-Identifier: Apache-2.0
// A run in three phases: each begins at an exact iteration, and neither who collects nor an interruption changes a bit.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

// 16 iterations of 1,024 steps. The second phase begins with the fifth iteration, the first with 4,000 steps or more
// behind it; the third with the eleventh.
constexpr char kPhases[] =
    "phases=[{until_steps: 4000, set: {env.mujoco.push_speed: 1, env.mujoco.reset_noise_scale: 0.1, ppo.lr: 1e-3}}, "
    "{until_steps: 10240, set: {env.mujoco: {healthy_reward: 2}, ppo.entropy_coefficient: 0.01}}]";
constexpr int kLastOfFirst = 4, kLastOfSecond = 10, kIterations = 16;

class PhasesRun : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {
        "train",  "--env", "QuadrupedStand-v0", "--envs",     "8",         "--envs-per-runner", "4", "--steps", "16384",
        "--name", "run",   "--no-eval",         "--runs-dir", runs_.path()};
    for (const char* const setting :
         {"rollout.steps_per_iteration=1024", "ppo.minibatch_size=256", "ppo.lr_schedule=constant",
          "env.max_episode_steps=60", "env.mujoco.push_interval_range=[0.05, 0.1]", "checkpoint.interval_steps=1024",
          "checkpoint.keep=100", kPhases}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string run() const { return runs_.path() + "/run"; }

  std::string Finish(const std::vector<std::string>& more = {}) const {
    const Ended ended = RunToEnd("skein", Arguments(more), absl::Minutes(2));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return Digest(run());
  }
  static const std::string& Uninterrupted() {
    static const std::string* const digest = [] {
      class Once : public PhasesRun {
        void TestBody() override {}
      };
      return new std::string(Once().Finish({"--actors", "1", "--runners", "1"}));
    }();
    return *digest;
  }
  bool HasCheckpointAfter(int iteration) const {
    char folder[64];
    std::snprintf(folder, sizeof(folder), "/checkpoints/step_%012d/DONE", iteration * 1024);
    return std::filesystem::exists(run() + folder);
  }
  // Starts training, and ends it by `signal` once it has passed `iteration`.
  void Interrupt(int iteration, int signal) const {
    Running skein("skein", Arguments({}));
    ASSERT_TRUE(WaitUntil([&] { return skein.ended() || HasCheckpointAfter(iteration); }, absl::Minutes(1)));
    if (signal == SIGKILL) {
      const auto learner = FindChild(skein.pid(), "skein-learner");
      ASSERT_TRUE(learner);
      kill(*learner, SIGKILL);
    } else {
      skein.Signal(signal);
    }
    skein.WaitForEnd(absl::Seconds(20));
    ASSERT_FALSE(HasCheckpointAfter(kIterations)) << "ended too early";
  }

  const ScratchFolder runs_;
};

TEST_F(PhasesRun, BeginAtExactIterationsForAnyNumberOfActors) {
  EXPECT_EQ(Finish({"--actors", "2", "--runners", "2"}), Uninterrupted());
  std::ifstream log(run() + "/metrics.jsonl");
  int iteration = 0;
  for (std::string line; std::getline(log, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    ++iteration;
    const int phase = iteration <= kLastOfFirst ? 1 : iteration <= kLastOfSecond ? 2 : 3;
    EXPECT_EQ(json["phase"], phase) << iteration;
    EXPECT_NEAR(json["update"]["lr"].get<double>(), phase == 1 ? 1e-3 : 3e-4, 1e-12) << iteration;
  }
  EXPECT_EQ(iteration, kIterations);
  const std::string text = runs_.Read("run/log/learner.log");
  EXPECT_THAT(text, HasSubstr("phase 1 of 3 at env step 0: env.mujoco.reset_noise_scale 0.1, env.mujoco.push_speed 1, "
                              "ppo.lr 0.001"));
  EXPECT_THAT(text, HasSubstr("phase 2 of 3 at env step 4096: env.mujoco.healthy_reward 2"));
  EXPECT_THAT(text, HasSubstr("phase 3 of 3 at env step 10240: the run's own settings"));
}

TEST_F(PhasesRun, EachPhaseMatters) {
  for (const char* const phases :
       {"phases=[{until_steps: 4000, set: {env.mujoco.push_speed: 1, env.mujoco.reset_noise_scale: 0.1}}]",
        "phases=[{until_steps: 4000, set: {ppo.lr: 1e-3}}]", "phases=[{until_steps: 4000, set: {}}]"}) {
    std::vector<std::string> arguments = Arguments({"--set", phases});
    *(std::find(arguments.begin(), arguments.end(), "--name") + 1) = "other";
    const Ended ended = RunToEnd("skein", arguments, absl::Minutes(2));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_NE(Digest(runs_.path() + "/other"), Uninterrupted()) << phases;
    std::filesystem::remove_all(runs_.path() + "/other");
  }
}

TEST_F(PhasesRun, AStopInTheFirstPhaseChangesNothing) {
  Interrupt(2, SIGTERM);
  EXPECT_EQ(Finish(), Uninterrupted());
}

TEST_F(PhasesRun, AKilledLearnerAtTheSwitchChangesNothing) {
  Interrupt(kLastOfFirst, SIGKILL);
  EXPECT_EQ(Finish(), Uninterrupted());
}

TEST_F(PhasesRun, AKilledActorInTheSecondPhaseChangesNothing) {
  Running skein("skein", Arguments({"--actors", "1", "--runners", "2"}));
  ASSERT_TRUE(WaitUntil([&] { return skein.ended() || HasCheckpointAfter(6); }, absl::Minutes(1)));
  const auto actor = FindChild(skein.pid(), "skein-actor");
  ASSERT_TRUE(actor);
  kill(*actor, SIGKILL);
  EXPECT_EQ(skein.WaitForEnd(), 0);
  EXPECT_EQ(Digest(run()), Uninterrupted());
}

TEST_F(PhasesRun, AStopInTheLastPhaseChangesNothing) {
  Interrupt(kLastOfSecond + 1, SIGTERM);
  EXPECT_EQ(Finish({"--runners", "1"}), Uninterrupted());
}

}  // namespace
}  // namespace skein
