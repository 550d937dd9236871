// SPDX-License-Identifier: Apache-2.0
// skein bench as a user types it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

const std::vector<std::string> kVerbs = {"ars", "env", "rollout", "serve", "stream", "learner", "train"};
// Small enough for a test.
const std::vector<std::string> kSmall = {"--rounds",  "1",
                                         "--seconds", "0.2",
                                         "--env",     "CartPole-v1",
                                         "--set",     "rollout.steps_per_iteration=512",
                                         "--set",     "rollout.envs_per_runner=4",
                                         "--set",     "ppo.minibatch_size=128"};

Ended Bench(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"bench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunToEnd("skein", words);
}

Json Report(const std::string& verb, const std::vector<std::string>& more = {}) {
  const ScratchFolder folder;
  std::vector<std::string> arguments = {verb};
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  arguments.insert(arguments.end(), {"--json", folder.path() + "/report.json"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ended ended = Bench(arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("CartPole-v1"), HasSubstr("\nmedian ")));
  Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  EXPECT_TRUE(report.is_object());
  return report;
}

// What all verbs' reports have in common; `rate` over `reference` is the ratio.
void ExpectReport(const Json& report, const std::string& verb, const std::string& rate, const std::string& reference) {
  std::vector<std::string> keys;
  for (const auto& item : report.items()) keys.push_back(item.key());
  EXPECT_THAT(keys, ElementsAre("machine", "config", "summary", "rows"));
  EXPECT_EQ(report["config"]["verb"], verb);
  EXPECT_EQ(report["config"]["run"]["env"]["id"], "CartPole-v1");
  EXPECT_GE(report["machine"]["cores"], 1);
  ASSERT_EQ(report["rows"].size(), 1u);
  for (const Json& figures : {report["summary"], report["rows"][0]}) {
    for (const std::string& key : {rate, "limit_" + rate, reference}) EXPECT_GT(figures.at(key), 0) << key;
    EXPECT_DOUBLE_EQ(figures.at("ratio"), figures.at(rate).get<double>() / figures.at(reference).get<double>());
  }
}

TEST(BenchCommand, EnvComparesWithBareSteps) {
  const Json report = Report("env", {"--threads", "2"});
  ExpectReport(report, "env", "env_steps_per_second", "limit_env_steps_per_second");
  EXPECT_EQ(report["config"]["threads"], 2);
  EXPECT_EQ(report["config"]["limit"], "Env::Step");
  // One agent.
  EXPECT_DOUBLE_EQ(report["rows"][0]["agent_steps_per_second"], report["rows"][0]["env_steps_per_second"]);
}

TEST(BenchCommand, ActingComparesWithLibTorchAlsoOfAMemory) {
  for (const auto& [memory, written] :
       {std::pair("none", "MEMORY_NONE"), std::pair("gru", "MEMORY_GRU"), std::pair("lstm", "MEMORY_LSTM")}) {
    const Json report = Report("acting", {"--memory", memory});
    ExpectReport(report, "acting", "rows_per_second", "limit_rows_per_second");
    EXPECT_EQ(report["config"]["run"]["model"]["memory"], written);
  }
  EXPECT_EQ(Bench({"acting", "--memory", "elephant"}).code, 64);
}

TEST(BenchCommand, ServeMeasuresLatencyOfCallsAndRateOfRows) {
  const Json report = Report("serve", {"--rows", "16"});
  ExpectReport(report, "serve", "actions_per_second", "limit_actions_per_second");
  for (const char* key : {"turn_p50_us", "turn_p99_us", "call_p50_us", "call_p99_us", "http_p50_us", "http_p99_us"}) {
    EXPECT_GT(report["summary"][key], 0) << key;
  }
}

TEST(BenchCommand, RolloutSaysWhereTheTimeGoes) {
  const Json report = Report("rollout", {"--runners", "2"});
  ExpectReport(report, "rollout", "env_steps_per_second", "limit_env_steps_per_second");
  const Json& summary = report["summary"];
  for (const char* stage : {"env_step", "inference", "build"}) {
    EXPECT_GT(summary["actor_microseconds_per_env_step"][stage], 0) << stage;
    EXPECT_GT(summary["share_of_runner_time"][stage], 0) << stage;
  }
  EXPECT_GE(summary["wire_serialisation_waiting_share"], 0);
}

TEST(BenchCommand, ArsSaysWhatAPairCosts) {
  const ScratchFolder folder;
  const Ended ended = Bench({"ars", "--rounds", "1", "--seconds", "0.2", "--env", "CartPole-v1", "--runners", "1",
                             "--set", "directions.dir_chunk=32", "--json", folder.path() + "/report.json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  ExpectReport(report, "ars", "env_steps_per_second", "limit_env_steps_per_second");
  EXPECT_GT(report["summary"]["actor_microseconds_per_env_step"]["inference"], 0);
  // 32 bytes, and what an order of 32 directions has once.
  EXPECT_GE(report["summary"]["message_bytes_per_pair"], 32);
  EXPECT_LE(report["summary"]["message_bytes_per_pair"], 64);
  // Two sums of four numbers with 16 bytes each.
  EXPECT_NEAR(report["summary"]["message_bytes_per_pair_without_sums"].get<double>() + 2 * 4 * 16 / 32.0,
              report["summary"]["message_bytes_per_pair"].get<double>(), 1e-9);
}

TEST(BenchCommand, ArsRefusesAConfigurationThatIsNoSearch) {
  const Ended ended = Bench({"ars", "--config", "configs/cartpole_ppo.yaml"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_EQ(ended.err,
            "skein bench ars: the configuration's algorithm is ppo, want ars or es; try skein bench rollout\n");
}

TEST(BenchCommand, StreamSaysWhatABatchCosts) {
  const Json report = Report("stream");
  ExpectReport(report, "stream", "bytes_per_second", "limit_bytes_per_second");
  EXPECT_GT(report["config"]["message_bytes"], 0);
  for (const char* key : {"microseconds_per_batch", "cpu_microseconds_per_batch", "limit_microseconds_per_batch"}) {
    EXPECT_GT(report["summary"][key], 0) << key;
  }
}

TEST(BenchCommand, LearnerCountsSamplesTimesEpochs) {
  const Json report = Report("learner", {"--set", "ppo.epochs=2"});
  ExpectReport(report, "learner", "samples_per_second", "limit_samples_per_second");
  const Json& row = report["rows"][0];
  // 512 samples x 2 epochs an update.
  EXPECT_NEAR(row["samples_per_second"].get<double>() * row["seconds_per_update"].get<double>(), 1024, 1e-3);
}

TEST(BenchCommand, LearnerRanksTrainWithAnyAlgorithm) {
  const ScratchFolder folder;
  folder.Write("run.yaml",
               "env: {id: CartPole-v1}\nrollout: {steps_per_iteration: 512}\nreinforce: {minibatch_size: 128}\n");
  const Ended ended = Bench(
      {"learner", "--learners", "1,2", "--rounds", "1", "--seconds", "0.05", "--config", folder.path() + "/run.yaml"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("CartPole-v1: updates of 1, 2 learners"));
}

TEST(BenchCommand, LearnerRanksSayWhatSummingGradientsCosts) {
  const ScratchFolder folder;
  std::vector<std::string> arguments = {
      "learner", "--learners", "2,1", "--parameters", "100,2000", "--json", folder.path() + "/report.json"};
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  const Ended ended = Bench(arguments);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("CartPole-v1: updates of 1, 2 learners"), HasSubstr("efficiency")));
  const Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["learners"], Json({1, 2}));
  // Of 512 samples in minibatches of 128 each of two learners has half; an update is one epoch.
  EXPECT_EQ(report["config"]["run"]["rollout"]["steps_per_iteration"], 256);
  EXPECT_EQ(report["config"]["run"]["ppo"]["minibatch_size"], 64);
  ASSERT_EQ(report["rows"].size(), 4u);
  ASSERT_EQ(report["summary"]["combinations"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Json& figures = report["summary"]["combinations"][i];
    EXPECT_EQ(figures["learners"], i % 2 + 1);
    // With hidden layers of width w, 2 (5 w + (w + 1) w) + 3 (w + 1) = 2 w^2 + 15 w + 3 is nearest with 4, and with 28.
    EXPECT_EQ(figures["parameters"], i < 2 ? 95 : 1991) << figures;
    EXPECT_EQ(figures["gradient_steps_per_update"], 4);
    EXPECT_EQ(figures["all_reduces_per_step"], 1);
    // All of it to the one other rank.
    EXPECT_EQ(figures["bytes_sent_per_step"], i % 2 == 0 ? 0 : 4 * figures["parameters"].get<int>());
    EXPECT_DOUBLE_EQ(figures["ratio"],
                     figures["samples_per_second"].get<double>() / figures["limit_samples_per_second"].get<double>());
    for (const char* key : {"ratio", "efficiency", "seconds_per_update", "all_reduce_microseconds_per_step"}) {
      EXPECT_GT(figures[key], 0) << key;
    }
    EXPECT_GE(figures["hidden_share"], 0);
  }
}

TEST(BenchCommand, LearnerRanksEndWithTheOneThatFails) {
  const Ended ended = Bench({"learner", "--learners", "2", "--device", "cuda:99"});
  EXPECT_EQ(ended.code, 65);
  EXPECT_THAT(ended.err,
              AllOf(StartsWith("skein bench learner: learner rank 0 of 2 ended with code 65: "), HasSubstr("cuda:99")));
}

TEST(BenchCommand, TrainComparesWithTheRoofline) {
  const Json report = Report("train", {"--iterations", "2", "--runners", "2", "--set", "sync.mode=overlapped"});
  ExpectReport(report, "train", "env_steps_per_second", "roofline_env_steps_per_second");
  const Json& row = report["rows"][0];
  EXPECT_EQ(row["iterations"], 2);
  EXPECT_DOUBLE_EQ(row["roofline_env_steps_per_second"], 1 / (1 / row["limit_env_steps_per_second"].get<double>() +
                                                              row["update_seconds_per_env_step"].get<double>()));
  EXPECT_GT(row["ratio_at_most"], 0.5);
  EXPECT_LE(
      row["ratio_at_most"],
      row["limit_env_steps_per_second"].get<double>() / row["roofline_env_steps_per_second"].get<double>() + 1e-9);
  const Json& summary = report["summary"];
  EXPECT_DOUBLE_EQ(summary["ratio_to_physics"],
                   summary["env_steps_per_second"].get<double>() / summary["limit_env_steps_per_second"].get<double>());
  EXPECT_GT(summary["seconds_per_env_step"]["actors"]["env_step"], 0);
  EXPECT_GT(summary["seconds_per_env_step"]["learner"]["update"], 0);
  EXPECT_GE(summary["wire_serialisation_waiting_share"], 0);
}

TEST(BenchCommand, TrainComparesWithWhatItsPoliciesDo) {
  const ScratchFolder folder;
  const Ended ended = Bench({"train",
                             "--env",
                             "HalfCheetah-v5",
                             "--limit",
                             "policy",
                             "--rounds",
                             "1",
                             "--seconds",
                             "0.2",
                             "--iterations",
                             "1",
                             "--runners",
                             "1",
                             "--set",
                             "env.max_episode_steps=20",
                             "--set",
                             "rollout.steps_per_iteration=512",
                             "--set",
                             "ppo.minibatch_size=128",
                             "--json",
                             folder.path() + "/report.json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json report = Json::parse(folder.Read("report.json"), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["limit"], "mj_step");
  EXPECT_EQ(report["config"]["limit_actions"], "policy");
  EXPECT_GT(report["summary"]["limit_env_steps_per_second"], 0);
  EXPECT_GT(report["summary"]["ratio"], 0);

  const Ended other = Bench({"train", "--env", "CartPole-v1", "--limit", "policy"});
  EXPECT_EQ(other.code, 64);
  EXPECT_THAT(other.err, HasSubstr("--limit policy: only environments of MuJoCo have it, CartPole-v1 does not"));
}

TEST(BenchCommand, EachVerbHelpsWithAnExample) {
  EXPECT_EQ(Bench({"--help"}).code, 0);
  for (const std::string& verb : kVerbs) {
    const Ended ended = Bench({verb, "--help"});
    EXPECT_EQ(ended.code, 0) << verb;
    EXPECT_THAT(ended.out, AllOf(HasSubstr("skein bench " + verb), HasSubstr("--json"), HasSubstr("Example"))) << verb;
  }
}

TEST(BenchCommand, MistakesEndItBeforeItMeasures) {
  const ScratchFolder folder;
  for (const std::string& verb : kVerbs) {
    for (const std::vector<std::string>& mistake :
         std::vector<std::vector<std::string>>{{"--env", "HalfCheetah-v6"},
                                               {"--set", "ppo.learning_rate=1"},
                                               {"--rounds", "0"},
                                               {"--seconds", "never"},
                                               {"--no-such-flag"}}) {
      std::vector<std::string> arguments = {verb};
      arguments.insert(arguments.end(), mistake.begin(), mistake.end());
      const Ended ended = Bench(arguments);
      EXPECT_EQ(ended.code, 64) << verb << " " << mistake[0] << ": " << ended.err;
      EXPECT_THAT(ended.err, StartsWith("skein bench " + verb + ": "));
      EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    }
    const Ended unwritable = Bench({verb, "--json", folder.path() + "/none/x.json"});
    EXPECT_EQ(unwritable.code, 74) << verb << ": " << unwritable.err;
  }
  EXPECT_EQ(Bench({}).code, 64);
  EXPECT_EQ(Bench({"everything"}).code, 64);
  EXPECT_EQ(Bench({"env", "--threads", "many"}).code, 64);
  EXPECT_EQ(Bench({"rollout", "--runners", "0"}).code, 64);
  EXPECT_EQ(Bench({"learner", "--learners", "0"}).code, 64);
  EXPECT_EQ(Bench({"learner", "--learners", "1,many"}).code, 64);
  EXPECT_EQ(Bench({"learner", "--learners", "1", "--batch", "64", "--minibatch", "128"}).code, 64);
  EXPECT_EQ(Bench({"learner", "--batch", "64"}).code, 64);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace skein
