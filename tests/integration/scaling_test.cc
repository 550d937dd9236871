// SPDX-License-Identifier: Apache-2.0
// `skein bench scaling` and `skein tune` on a small scale: that they come to an end and leave what they promise.
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

const std::vector<std::string> kSmall = {"--env", "CartPole-v1",  "--set", "ppo.epochs=1", "--steps-per-iteration",
                                         "2048",  "--iterations", "2"};

std::vector<std::string> With(const std::vector<std::string>& first, const std::vector<std::string>& more) {
  std::vector<std::string> all = first;
  all.insert(all.end(), kSmall.begin(), kSmall.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Scaling, MeasuresEachConfigurationAndGoesOnWhereItStopped) {
  const ScratchFolder folder;
  const std::string out = folder.path() + "/study";
  const std::string json = folder.path() + "/copy.json";
  const Ended first = RunToEnd("skein", With({"bench", "scaling"}, {"--runners", "1", "--envs", "4", "--no-limit",
                                                                    "--out", out, "--json", json}));
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("1x4"), HasSubstr("fastest: "), HasSubstr("report: " + out + "/report.md")));
  EXPECT_THAT(first.err, HasSubstr("skein bench scaling: [2/2] 1x4: "));
  const nlohmann::json results = ReadJson(out + "/results.json");
  EXPECT_EQ(ReadJson(json), results);
  ASSERT_THAT(results.at("rows"), SizeIs(2));
  for (const nlohmann::json& row : results.at("rows")) {
    EXPECT_THAT(row.at("raw").at("iteration_seconds"), SizeIs(2));
    EXPECT_EQ(row.at("raw").at("env_steps"), 2 * 2048);
    EXPECT_GT(row.at("env_steps_per_second").get<double>(), 0);
    EXPECT_THAT(row.at("raw").at("usage_samples"), testing::Not(SizeIs(0)));
    const nlohmann::json& runners = row.at("stage_shares").at("runners");
    EXPECT_GT(runners.at("physics").get<double>(), 0);
    EXPECT_GT(row.at("stage_shares").at("learner").at("update").get<double>(), 0);
  }
  std::ifstream report(out + "/report.md");
  const std::string text{std::istreambuf_iterator<char>(report), {}};
  EXPECT_THAT(text, StartsWith("# How training of CartPole-v1 scales"));

  const Ended refused = RunToEnd("skein", With({"bench", "scaling"}, {"--envs", "4", "--no-limit", "--out", out}));
  EXPECT_EQ(refused.code, 69) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("--resume goes on"));
  const Ended second =
      RunToEnd("skein", With({"bench", "scaling"}, {"--envs", "4,8", "--no-limit", "--out", out, "--resume"}));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr("[3/3] 1x8"), testing::Not(HasSubstr("1x4"))));
  EXPECT_THAT(ReadJson(out + "/results.json").at("rows"), SizeIs(3));
}

TEST(Scaling, SplitsRunnersOverActorProcesses) {
  const ScratchFolder folder;
  const std::string out = folder.path() + "/study";
  const Ended ended = RunToEnd("skein", With({"bench", "scaling"}, {"--runners", "2", "--actors", "2", "--no-limit",
                                                                    "--steps-per-env", "512", "--out", out}));
  EXPECT_EQ(ended.code, 64) << ended.err;  // --steps-per-iteration is there, too.
  const Ended both =
      RunToEnd("skein", {"bench", "scaling", "--env", "CartPole-v1", "--set", "ppo.epochs=1", "--iterations", "2",
                         "--steps-per-env", "512", "--runners", "2", "--actors", "2", "--no-limit", "--out", out});
  ASSERT_EQ(both.code, 0) << both.err;
  const nlohmann::json rows = ReadJson(out + "/results.json").at("rows");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].at("raw").at("actors"), 2);
  EXPECT_EQ(rows[1].at("raw").at("steps_per_iteration"), 1024);  // 2 x 512.
}

TEST(Scaling, MeasuresASearchWithADirectionForEachRunner) {
  const ScratchFolder folder;
  const std::string out = folder.path() + "/study";
  const Ended ended = RunToEnd("skein", {"bench",           "scaling",
                                         "--env",           "Latency-v0",
                                         "--recipe",        "none",
                                         "--set",           "ars.top_dirs=0",
                                         "--set",           "model.policy=linear",
                                         "--set",           "env.latency.step_ms=1",
                                         "--iterations",    "2",
                                         "--steps-per-env", "40",
                                         "--runners",       "2",
                                         "--actors",        "2",
                                         "--out",           out});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const nlohmann::json rows = ReadJson(out + "/results.json").at("rows");
  ASSERT_THAT(rows, SizeIs(2));
  // Two directions, two signs, episodes of 20 steps.
  EXPECT_EQ(rows[1].at("raw").at("steps_per_iteration"), 80);
  EXPECT_EQ(rows[1].at("raw").at("actors"), 2);
  EXPECT_GT(rows[1].at("limit_ratio").get<double>(), 0);
}

TEST(Tune, WritesDownWhatItMeasuredAndARunKeepsThoseItBeganWith) {
  const ScratchFolder folder;
  const std::string profile = folder.path() + "/fast.yaml";
  const Ended tuned = RunToEnd("skein", With({"tune"}, {"--json", "--write", profile}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const nlohmann::json report = nlohmann::json::parse(tuned.out);
  EXPECT_GE(report.at("summary").at("runners").get<int>(), 1);
  EXPECT_EQ(report.at("config").at("env"), "CartPole-v1");
  EXPECT_EQ(report.at("config").at("algorithm"), "ppo");
  EXPECT_GT(report.at("machine").at("device_speed").at("fp32_flops").get<double>(), 0);
  const std::string text = folder.Read("fast.yaml");
  EXPECT_THAT(text, AllOf(StartsWith("# Measured by skein tune for CartPole-v1 and ppo: "), HasSubstr("epochs: 1"),
                          HasSubstr("  num_envs: "), HasSubstr("# All that was tried:\n"),
                          ContainsRegex("#.* ENV-STEPS/S"), HasSubstr("<- chosen\n")));
  const Ended again = RunToEnd("skein", With({"tune"}, {"--write", profile}));
  EXPECT_EQ(again.code, 69) << again.err;
  EXPECT_THAT(again.err, HasSubstr("is there already; --force writes over it"));
  EXPECT_EQ(RunToEnd("skein", With({"tune"}, {"--force"})).code, 64);

  const std::vector<std::string> train = {"train",      "--config",    profile,  "--steps", "1",
                                          "--runs-dir", folder.path(), "--name", "run",     "--no-eval"};
  const Ended trained = RunToEnd("skein", train);
  EXPECT_EQ(trained.code, 0) << trained.err;
  const std::vector<std::string> open = {"train", "--env",      "CartPole-v1", "--recipe", "none", "--steps",
                                         "1",     "--runs-dir", folder.path(), "--name",   "open", "--no-eval"};
  const Ended first = RunToEnd("skein", open);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("runners: one for each of "));
  const Ended resumed = RunToEnd("skein", open);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("as in the run that this continues"));
}

TEST(Tune, MeasuresASearchWithActorsAndOnTheDevice) {
  const std::vector<std::string> small = {"--env",        "CartPole-v1",
                                          "--algorithm",  "ars",
                                          "--set",        "model.policy=linear",
                                          "--set",        "directions.num_dirs=2",
                                          "--set",        "directions.episode_length=20",
                                          "--iterations", "1",
                                          "--json"};
  std::vector<std::string> arguments = {"tune"};
  arguments.insert(arguments.end(), small.begin(), small.end());
  const Ended actors = RunToEnd("skein", arguments);
  ASSERT_EQ(actors.code, 0) << actors.err;
  const nlohmann::json report = nlohmann::json::parse(actors.out);
  EXPECT_EQ(report.at("config").at("algorithm"), "ars");
  EXPECT_GE(report.at("summary").at("num_dirs").get<int>(), 2);
  // One iteration of 80 steps takes milliseconds; what is measured is a second, less the iterations at both ends.
  EXPECT_GT(report.at("summary").at("seconds").get<double>(), 0.8);
  arguments.insert(arguments.end(), {"--set", "sync.mode=on_device", "--set", "directions.num_envs=65536", "--set",
                                     "directions.num_dirs=1", "--set", "directions.episode_length=2"});
  const Ended device = RunToEnd("skein", arguments);
  ASSERT_EQ(device.code, 0) << device.err;
  const nlohmann::json of_device = nlohmann::json::parse(device.out);
  EXPECT_EQ(of_device.at("rows")[0].at("num_envs"), 65536);
  EXPECT_EQ(of_device.at("rows")[0].at("dir_chunk"), 0);
}

TEST(Tune, RefusesFlagsThatASearchDoesNotRead) {
  const std::vector<std::string> search = {"tune", "--env", "CartPole-v1", "--algorithm", "ars"};
  std::vector<std::string> batch = search, steps = search;
  batch.emplace_back("--batch");
  steps.insert(steps.end(), {"--steps-per-iteration", "64"});
  const Ended of_batch = RunToEnd("skein", batch), of_steps = RunToEnd("skein", steps);
  EXPECT_EQ(of_batch.code, 64);
  EXPECT_EQ(of_batch.err, "skein bench tune: --batch cannot be given with ars, which has no minibatches\n");
  EXPECT_EQ(of_steps.code, 64);
  EXPECT_THAT(of_steps.err, StartsWith("skein bench tune: --steps-per-iteration cannot be given with ars, whose"));
}

}  // namespace
}  // namespace skein
