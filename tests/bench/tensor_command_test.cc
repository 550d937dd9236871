// SPDX-License-Identifier: Apache-2.0
// skein bench tensor as a user types it.
#include <sys/resource.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Json = nlohmann::json;

Json Report(const std::vector<std::string>& more) {
  const ScratchFolder folder;
  std::vector<std::string> arguments = {"bench",     "tensor", "--rounds", "1",
                                        "--seconds", "0.1",    "--json",   folder.path() + "/report.json",
                                        "--device",  "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ended ended = RunToEnd("skein", arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("worlds as tensors on cpu"), HasSubstr("\nmedian ")));
  Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  EXPECT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["verb"], "tensor");
  EXPECT_EQ(report["config"]["device"], "cpu");
  const Json& row = report["rows"][0];
  EXPECT_GT(row["limit_env_steps_per_second"], 0);
  EXPECT_GT(row["agent_steps_per_second"], 0);
  EXPECT_DOUBLE_EQ(row["ratio"],
                   row["env_steps_per_second"].get<double>() / row["limit_env_steps_per_second"].get<double>());
  return report;
}

TEST(BenchTensorCommand, StepsAgainstVectorEnv) {
  const Json report = Report({"--worlds", "5", "--steps", "8"});
  EXPECT_EQ(report["config"]["worlds"], 5);
  EXPECT_EQ(report["config"]["run"]["env"]["id"], "CartPole-v1");  // The first that has a tensor form.
}

TEST(BenchTensorCommand, TrainsAgainstStepping) {
  const Json report = Report({"--worlds", "32", "--steps", "8", "--train", "--env", "UavCover-v0"});
  EXPECT_EQ(report["config"]["run"]["env"]["id"], "UavCover-v0");
  const Json& row = report["rows"][0];
  EXPECT_GT(row["seconds_per_iteration"], 0);
  EXPECT_LE(row["collecting_share"].get<double>() + row["update_share"].get<double>(), 1);
}

TEST(BenchTensorCommand, TrainsWithAnyAlgorithm) {
  const Json report = Report(
      {"--worlds", "32", "--steps", "8", "--train", "--env", "CartPole-v1", "--set", "reinforce.minibatch_size=64"});
  EXPECT_TRUE(report["config"]["run"].contains("reinforce"));
}

TEST(BenchTensorCommand, PlaysDirectionsOfASearch) {
  const Json report = Report({"--algorithm", "ars", "--dirs", "4", "--worlds", "3", "--set", "model.policy=linear"});
  const Json& run = report["config"]["run"];
  EXPECT_TRUE(run.contains("ars"));
  EXPECT_EQ(run["directions"]["num_dirs"], 4);
  EXPECT_EQ(run["directions"]["num_envs"], 3);
  EXPECT_EQ(report["config"]["worlds"], 2 * 4 * 3);
  EXPECT_GT(report["rows"][0]["seconds_per_iteration"], 0);
  const Ended other = RunToEnd("skein", {"bench",       "tensor",
                                         "--rounds",    "1",
                                         "--seconds",   "0.1",
                                         "--device",    "cpu",
                                         "--env",       "CartPole-v1",
                                         "--algorithm", "ars",
                                         "--dirs",      "2",
                                         "--worlds",    "4",
                                         "--set",       "ars.top_dirs=0",
                                         "--set",       "directions.num_envs=2"});
  EXPECT_THAT(other.out, HasSubstr("8 worlds as tensors on cpu, 2 directions x 2 signs x 2: training")) << other.err;
}

// With 4 GiB of addresses; the actions of so many worlds alone need 64.
TEST(BenchTensorCommand, SaysInOneLineThatMemoryDoesNotSuffice) {
#if defined(SKEIN_SANITIZED)
  GTEST_SKIP() << "sanitizers need more addresses";
#endif
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small = {rlim_t{4} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  const Ended ended = RunToEnd("skein", {"bench", "tensor", "--env", "CartPole-v1", "--algorithm", "ars", "--dirs",
                                         "1024", "--worlds", "65536", "--device", "cpu"});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(ended.code, 74);
  EXPECT_THAT(ended.err, testing::MatchesRegex("skein bench tensor: out of memory while (making|stepping) 134217728 "
                                               "worlds; take fewer --worlds or, of a search, --dirs\n"));
}

TEST(BenchTensorCommand, MistakesEndItBeforeItMeasures) {
  const Ended other = RunToEnd("skein", {"bench", "tensor", "--env", "Pendulum-v1"});
  EXPECT_EQ(other.code, 64);
  EXPECT_THAT(other.err, HasSubstr("Pendulum-v1 has no such form"));
  EXPECT_EQ(RunToEnd("skein", {"bench", "tensor", "--worlds", "0"}).code, 64);
  EXPECT_EQ(RunToEnd("skein", {"bench", "tensor", "--algorithm", "sarsa"}).code, 64);
  EXPECT_THAT(RunToEnd("skein", {"bench", "tensor", "--dirs", "4"}).err, HasSubstr("--dirs wants --algorithm"));
  EXPECT_THAT(RunToEnd("skein", {"bench", "tensor", "--algorithm", "ars", "--steps", "4"}).err,
              HasSubstr("--steps cannot be given with a search"));
  EXPECT_EQ(RunToEnd("skein", {"bench", "tensor", "--env", "UavNavigate-v0", "--set", "env.uav.uavs=0"}).code, 64);
  EXPECT_EQ(RunToEnd("skein", {"bench", "tensor", "--json", "/no/such/folder/x.json"}).code, 74);
}

}  // namespace
}  // namespace skein
