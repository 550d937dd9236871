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

TEST(Tune, FindsSizesAndARunKeepsThoseItBeganWith) {
  const ScratchFolder folder;
  const Ended tuned = RunToEnd("skein", With({"tune"}, {"--json"}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const nlohmann::json report = nlohmann::json::parse(tuned.out);
  EXPECT_GE(report.at("summary").at("runners").get<int>(), 1);
  EXPECT_EQ(report.at("config").at("env"), "CartPole-v1");

  const std::vector<std::string> train = {"train", "--env",      "CartPole-v1", "--recipe", "none", "--steps",
                                          "1",     "--runs-dir", folder.path(), "--name",   "run",  "--no-eval"};
  const Ended trained = RunToEnd("skein", train);
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("runners: one for each of "));
  const Ended resumed = RunToEnd("skein", train);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("as in the run that this continues"));
}

}  // namespace
}  // namespace skein
