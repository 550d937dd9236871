// SPDX-License-Identifier: Apache-2.0
// sync.mode on_device: environments are tensors in the learner, and nobody else is needed.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Iterations of 64 x 16 steps, a checkpoint after each fourth.
class OnDevice : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train",
                                          "--env",
                                          "UavNavigate-v0",
                                          "--runs-dir",
                                          runs_.path(),
                                          "--name",
                                          name,
                                          "--no-eval",
                                          "--device",
                                          "cpu",
                                          "--envs",
                                          "64",
                                          "--set",
                                          "sync.mode=on_device",
                                          "--set",
                                          "rollout.steps_per_iteration=1024",
                                          "--set",
                                          "env.uav.uavs=3",
                                          "--set",
                                          "env.uav.size=8",
                                          "--set",
                                          "env.uav.obstacles=6",
                                          "--set",
                                          "ppo.minibatch_size=1024",
                                          "--set",
                                          "checkpoint.interval_steps=4096",
                                          "--steps",
                                          "20480"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string run(const std::string& name) const { return runs_.path() + "/" + name; }

  std::string Finish(const std::string& name, const std::vector<std::string>& more = {}) const {
    const Ended ended = RunToEnd("skein", Arguments(name, more));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("no actors: 64 environments step on the learner's device, 16 steps each"));
    EXPECT_THAT(ended.out, Not(HasSubstr("add workers")));
    EXPECT_FALSE(std::filesystem::exists(run(name) + "/actor-1.log"));
    const v1::StepAccount account = Account(run(name));
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
    EXPECT_EQ(account.collected(), 20480u);
    EXPECT_EQ(account.trained(), 20480u);
    return Digest(run(name));
  }

  const ScratchFolder runs_;
};

TEST_F(OnDevice, TrainsToTheTargetAlikeEachTimeAndAfterAStop) {
  const std::string digest = Finish("whole");
  EXPECT_EQ(Finish("again"), digest);
  EXPECT_NE(Finish("other", {"--seed", "2"}), digest);

  Running skein("skein", Arguments("stopped", {}));
  EXPECT_TRUE(WaitUntil([&] { return skein.ended() || !NewestCheckpoint(run("stopped")).empty(); }, absl::Minutes(1)));
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(absl::Seconds(20)), 0);
  EXPECT_FALSE(std::filesystem::exists(run("stopped") + "/checkpoints/step_000000020480/DONE")) << "ended too early";
  EXPECT_EQ(Finish("stopped"), digest);
}

TEST_F(OnDevice, TwoRanksStepTheirSharesAndAccountForAllSteps) {
  const Ended ended = RunToEnd("skein", Arguments("ranks", {"--learners", "2"}));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  const v1::StepAccount account = Account(run("ranks"));
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), 20480u);
}

TEST_F(OnDevice, CartPoleTrains) {
  const Ended ended = RunToEnd("skein", {"train", "--env", "CartPole-v1", "--runs-dir", runs_.path(), "--name", "cart",
                                         "--set", "sync.mode=on_device", "--steps", "32768", "--no-eval"});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  const v1::StepAccount account = Account(run("cart"));
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), 32768u);
}

// A search: neither how many directions are played at once nor a stop changes a bit.
TEST_F(OnDevice, SearchesOverDirectionsAlikeInAnyChunksAndAfterAStop) {
  const auto arguments = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train", "--env",     "CartPole-v1", "--runs-dir", runs_.path(), "--name",
                                    name,    "--no-eval", "--device",    "cpu",        "--steps",    "60000"};
    for (const char* setting : {"sync.mode=on_device", "ars.top_dirs=4", "model.policy=linear", "directions.num_dirs=8",
                                "directions.num_envs=3", "directions.noise_std=0.1", "env.max_episode_steps=100",
                                "checkpoint.interval_steps=2000"}) {
      all.insert(all.end(), {"--set", setting});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto finish = [&](const std::string& name, const std::vector<std::string>& more) {
    const Ended ended = RunToEnd("skein", arguments(name, more), absl::Minutes(2));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    const v1::StepAccount account = Account(run(name));
    EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
    EXPECT_GE(account.trained(), 60000u);
    return ended.out;
  };
  EXPECT_THAT(finish("whole", {}), HasSubstr("no actors: 8 directions x 2 signs x 3 episodes are played on the "
                                             "learner's device, all at once"));
  const std::string digest = Digest(run("whole"));
  finish("chunks", {"--set", "directions.dir_chunk=2"});
  EXPECT_EQ(Digest(run("chunks")), digest);

  Running skein("skein", arguments("stopped", {}));
  EXPECT_TRUE(WaitUntil([&] { return skein.ended() || !NewestCheckpoint(run("stopped")).empty(); }, absl::Minutes(1)));
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(absl::Seconds(20)), 0);
  EXPECT_THAT(finish("stopped", {}), HasSubstr("resuming at"));
  EXPECT_EQ(Digest(run("stopped")), digest);
  finish("other", {"--seed", "2"});
  EXPECT_NE(Digest(run("other")), digest);
}

TEST_F(OnDevice, OtherEnvironmentsAreRefused) {
  const Ended ended =
      RunToEnd("skein", {"train", "--env", "Pendulum-v1", "--runs-dir", runs_.path(), "--set", "sync.mode=on_device"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("on_device"), HasSubstr("Pendulum-v1 has no such form"),
                               HasSubstr("UavCover-v0 and UavNavigate-v0")));
  EXPECT_FALSE(std::filesystem::exists(runs_.path() + "/Pendulum-v1-s1"));
}

}  // namespace
}  // namespace skein
