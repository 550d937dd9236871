// SPDX-License-Identifier: Apache-2.0
// skein bench fit as a user types it.
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

Json Report(const ScratchFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "bench",    "fit",          "--rounds", "1",      "--seconds",
      "0.1",      "--batch-size", "8",        "--json", folder.path() + "/report.json",
      "--hidden", "16",           "--device", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ended ended = RunToEnd("skein", arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("our gradient step against plain LibTorch"), HasSubstr("waits for data"),
                               HasSubstr("\nmedian ")));
  Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  EXPECT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["verb"], "fit");
  EXPECT_EQ(report["config"]["device"], "cpu");
  EXPECT_EQ(report["config"]["run"]["model"]["hidden"], 16);
  EXPECT_EQ(report["config"]["run"]["train"]["batch_size"], 8);
  const Json& row = report["rows"][0];
  for (const char* key :
       {"tokens_per_second", "seconds_per_step", "limit_tokens_per_second", "limit_seconds_per_step"}) {
    EXPECT_GT(row[key], 0) << key;
  }
  EXPECT_DOUBLE_EQ(row["ratio"], row["tokens_per_second"].get<double>() / row["limit_tokens_per_second"].get<double>());
  EXPECT_GE(row["data_wait_share"], 0);
  EXPECT_LT(row["data_wait_share"], 1);
  EXPECT_EQ(row["out_of_memory"], 0);
  return report;
}

TEST(BenchFitCommand, MakesUpSequencesThatAreAllDifferent) {
  const ScratchFolder folder;
  const Json report = Report(folder, {"--vocabulary", "40", "--embedding", "16", "--layers", "1", "--length", "6"});
  EXPECT_EQ(report["config"]["classes"], 42);  // And the end, and the unknown key.
  EXPECT_EQ(report["config"]["batches"], 32);
  EXPECT_EQ(report["config"]["length"], 6);
  EXPECT_EQ(report["config"]["run"]["model"]["layers"], 1);
  EXPECT_EQ(report["rows"][0]["distinct_share"], 1);
  EXPECT_EQ(report["rows"][0]["limit_padded_share"], 0);
}

TEST(BenchFitCommand, ReadsAFile) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 30; ++i) text += i % 2 == 0 ? "1 2 3 4\n" : "5 6\n";
  folder.Write("sessions", text);
  const Json report = Report(folder, {"--data", folder.path() + "/sessions", "--set", "data.holdout=0"});
  EXPECT_EQ(report["config"]["data"], folder.path() + "/sessions");
  EXPECT_EQ(report["config"]["batches"], 4);
  EXPECT_LT(report["rows"][0]["distinct_share"], 0.5);
}

TEST(BenchFitCommand, MeasuresHowWellRanksTrainTogether) {
  const ScratchFolder folder;
  const Ended ended = RunToEnd("skein", {"bench",        "fit",
                                         "--learners",   "2,1",
                                         "--rounds",     "2",
                                         "--seconds",    "0.1",
                                         "--vocabulary", "40",
                                         "--hidden",     "16",
                                         "--embedding",  "16",
                                         "--length",     "6",
                                         "--batch-size", "64",
                                         "--device",     "cpu",
                                         "--json",       folder.path() + "/report.json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("gradient steps of 1, 2 ranks, each with 32 sequences of 6 keys and 1 threads"),
                    HasSubstr("efficiency")));
  const Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["learners"], (std::vector<int>{1, 2}));
  EXPECT_EQ(report["config"]["run"]["train"]["batch_size"], 32);
  ASSERT_EQ(report["rows"].size(), 4);
  ASSERT_EQ(report["summary"]["combinations"].size(), 2);
  for (int i = 0; i < 2; ++i) {
    const Json& figures = report["summary"]["combinations"][i];
    EXPECT_EQ(figures["learners"], i + 1);
    EXPECT_EQ(figures["device"], "cpu");
    for (const char* key : {"tokens_per_second", "limit_tokens_per_second", "efficiency", "seconds_per_step"}) {
      EXPECT_GT(figures[key], 0) << key;
    }
    EXPECT_DOUBLE_EQ(figures["ratio"],
                     figures["tokens_per_second"].get<double>() / figures["limit_tokens_per_second"].get<double>());
    // 32 sequences of 7 tokens for each rank.
    for (const Json& row : report["rows"]) {
      EXPECT_NEAR(row["tokens_per_second"].get<double>() * row["seconds_per_step"].get<double>(),
                  32 * 7 * row["learners"].get<int>(), 1e-6);
    }
  }
  const Ended failed = RunToEnd("skein", {"bench", "fit", "--learners", "2", "--device", "cuda:99"});
  EXPECT_EQ(failed.code, 65);
  EXPECT_THAT(failed.err, AllOf(testing::StartsWith("skein bench fit: learner rank 0 of 2 ended with code 65: "),
                                HasSubstr("cuda:99")));
}

TEST(BenchFitCommand, HelpsWithAnExample) {
  const Ended ended = RunToEnd("skein", {"bench", "fit", "--help"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("skein bench fit"), HasSubstr("--json"), HasSubstr("Example")));
}

TEST(BenchFitCommand, MistakesEndItBeforeItMeasures) {
  for (const std::vector<std::string>& mistake :
       std::vector<std::vector<std::string>>{{"--env", "X"},
                                             {"--hidden", "17"},
                                             {"--layers", "0"},
                                             {"--learners", "0"},
                                             {"--length", "0"},
                                             {"--rounds", "0"},
                                             {"--set", "train.learning_rate=1"},
                                             {"--vocabulary", "2", "--length", "3"},
                                             {"--data", "x", "--length", "3"}}) {
    std::vector<std::string> arguments = {"bench", "fit"};
    arguments.insert(arguments.end(), mistake.begin(), mistake.end());
    const Ended ended = RunToEnd("skein", arguments);
    EXPECT_EQ(ended.code, 64) << mistake[0] << ": " << ended.err;
    EXPECT_THAT(ended.err, testing::StartsWith("skein bench fit: "));
  }
  EXPECT_EQ(RunToEnd("skein", {"bench", "fit", "--data", "/no/such/file"}).code, 65);
  EXPECT_EQ(RunToEnd("skein", {"bench", "fit", "--device", "cuda:99"}).code, 65);
  EXPECT_EQ(RunToEnd("skein", {"bench", "fit", "--json", "/no/such/folder/x.json"}).code, 74);
}

}  // namespace
}  // namespace skein
