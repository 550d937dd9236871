// SPDX-License-Identifier: Apache-2.0
// `skein train` from the configuration file to the evaluated policy.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

struct Trained {
  Ended skein;
  nlohmann::json evaluation;
  v1::StepAccount account;
  std::vector<nlohmann::json> iterations;  // Lines of metrics.jsonl.
};

Trained Train(const std::string& config, const std::vector<std::string>& more) {
  const ScratchFolder runs;
  std::vector<std::string> arguments = {"train", "--config", config, "--runs-dir", runs.path(), "--name", "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Trained trained;
  trained.skein = RunToEnd("skein", arguments, absl::Minutes(5));
  EXPECT_EQ(trained.skein.code, 0) << trained.skein.out << trained.skein.err;
  const std::string run = runs.path() + "/run";
  trained.evaluation = ReadJson(run + "/eval.json");
  trained.account = Account(run);
  std::ifstream metrics(run + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) trained.iterations.push_back(nlohmann::json::parse(line));
  return trained;
}

void ExpectEveryStepAccountedFor(const Trained& trained, uint64_t env_steps, uint64_t steps_per_iteration) {
  EXPECT_TRUE(Balances(trained.account)) << trained.account.ShortDebugString();
  EXPECT_EQ(trained.account.pending(), 0u);
  EXPECT_EQ(trained.account.rejected(), 0u);
  EXPECT_EQ(trained.account.trained(), env_steps);
  EXPECT_EQ(trained.iterations.size(), env_steps / steps_per_iteration);
  for (size_t i = 0; i < trained.iterations.size(); ++i) {
    EXPECT_EQ(trained.iterations[i].at("env_steps").get<uint64_t>(), (i + 1) * steps_per_iteration);
    EXPECT_EQ(trained.iterations[i].at("policy_lag"), 0);
  }
}

TEST(Train, CartPoleReachesItsThreshold) {
  const Trained trained = Train("configs/cartpole_ppo.yaml", {});
  EXPECT_GE(trained.evaluation.at("return_mean").get<double>(), 475);
  EXPECT_EQ(trained.evaluation.at("episodes"), 10);
  // 200,000 steps rounded up to whole iterations of 1,024.
  ExpectEveryStepAccountedFor(trained, 200704, 1024);
  EXPECT_THAT(trained.skein.err, IsEmpty());
  EXPECT_THAT(trained.skein.out, HasSubstr("checkpoint: "));
  EXPECT_THAT(trained.skein.out, HasSubstr("step account: collected "));
}

TEST(Train, AnotherAlgorithmReachesTheHighestReturn) {
  const Trained trained = Train("configs/cartpole_reinforce.yaml", {});
  EXPECT_EQ(trained.evaluation.at("return_mean").get<double>(), 500);  // The most that there is.
  EXPECT_TRUE(Balances(trained.account)) << trained.account.ShortDebugString();
  for (const nlohmann::json& line : trained.iterations) {
    EXPECT_TRUE(line.at("update").contains("policy_loss"));
    EXPECT_FALSE(line.at("update").contains("clip_fraction"));  // PPO's.
  }
}

TEST(Train, CartPoleReachesItsThresholdAsynchronously) {
  const Trained trained = Train("configs/cartpole_ppo.yaml", {"--set", "sync.mode=async"});
  EXPECT_GE(trained.evaluation.at("return_mean").get<double>(), 475);
  EXPECT_TRUE(Balances(trained.account)) << trained.account.ShortDebugString();
  EXPECT_EQ(trained.account.trained(), 200704u);
  EXPECT_LT(trained.account.stale(), trained.account.trained() / 4);
  for (const nlohmann::json& line : trained.iterations) {
    EXPECT_LE(line.at("policy_lag").get<int>(), 4);
    EXPECT_GT(line.at("update").at("vtrace_rho").get<double>(), 0.5);
  }
}

TEST(Train, HalfCheetahImproves) {
  const Trained trained = Train("configs/half_cheetah_ppo.yaml", {"--steps", "151552"});
  ExpectEveryStepAccountedFor(trained, 151552, 2048);
  // 64 environments with episodes of 1,000 steps: the first 64 episodes end together, after 64,000 steps.
  double first = 0;
  for (const nlohmann::json& line : trained.iterations) {
    if (line.at("episodes").get<int>() == 0) continue;
    first = line.at("episode_return_mean").get<double>();
    break;
  }
  const double last = trained.evaluation.at("return_mean").get<double>();
  EXPECT_GT(last, 700);
  EXPECT_GT(last, first + 500);
}

// Outside of the source tree: the recipe is part of the program.
TEST(Train, AnEnvironmentAloneTakesItsRecipe) {
  const ScratchFolder folder;
  const char* const bin = std::getenv("SKEIN_BIN");
  ASSERT_NE(bin, nullptr);
  const std::string skein = std::filesystem::absolute(bin) / "skein";
  const auto train = [&](const std::string& name, const std::vector<std::string>& more, const char* steps = "4096") {
    std::vector<std::string> arguments = {"-C",  folder.path(), skein,    "train", "--steps",
                                          steps, "--no-eval",   "--name", name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = RunToEnd("/usr/bin/env", arguments, absl::Minutes(1));
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return ended.out;
  };
  EXPECT_THAT(train("recipe", {"--env", "CartPole-v1"}),
              StartsWith("recipe: configs/cartpole_ppo.yaml, made for CartPole-v1; your own settings override it\n"));
  const std::string config = std::filesystem::absolute("configs/cartpole_ppo.yaml");
  EXPECT_THAT(train("named", {"--config", config}), Not(HasSubstr("recipe:")));
  EXPECT_EQ(Digest(folder.path() + "/runs/recipe"), Digest(folder.path() + "/runs/named"));
  // The same command goes on.
  EXPECT_THAT(train("recipe", {"--env", "CartPole-v1"}, "6144"), HasSubstr("resuming at 4,096 of 6,144"));
}

// Whatever a program says of runs, checkpoints or coordinators before this one.
const char* const kTalkOfThePast =
    "(lost|earlier|before this one|[Rr]esum|went on|goes on|damaged|aside|no checkpoint)";

TEST(Train, AFirstRunDoesNotTalkOfWhatWasBefore) {
  const char* const bin = std::getenv("SKEIN_BIN");
  ASSERT_NE(bin, nullptr);
  const std::string skein = std::filesystem::absolute(bin) / "skein";
  for (const bool has_folder : {false, true}) {  // Of the run, with nothing in it.
    const ScratchFolder folder;
    if (has_folder) std::filesystem::create_directories(folder.path() + "/runs/first");
    const Ended ended = RunToEnd("/usr/bin/env", {"-C", folder.path(), skein, "train", "--env", "CartPole-v1",
                                                  "--steps", "2048", "--no-eval", "--name", "first"});
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    EXPECT_THAT(ended.err, IsEmpty());
    const std::vector<std::string> lines = absl::StrSplit(ended.out, '\n');
    EXPECT_THAT(lines[0], StartsWith("recipe: configs/cartpole_ppo.yaml"));
    EXPECT_THAT(lines, Contains("run directory: runs/first"));
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, "step account: ")) continue;  // Has a column of lost steps.
      EXPECT_THAT(FirstMatch(line, kTalkOfThePast), IsEmpty()) << line;
    }
    EXPECT_THAT(folder.Read("runs/first/log/coordinator.log"), HasSubstr("coordinator of run first-"));
    for (const char* log : {"log/coordinator.log", "log/learner.log", "log/actor-1.log", "log.jsonl"}) {
      const std::string text = folder.Read(std::string("runs/first/") + log);
      EXPECT_FALSE(text.empty()) << log;
      EXPECT_THAT(FirstMatch(text, kTalkOfThePast), IsEmpty()) << text;
    }
  }
}

TEST(Train, SaysWhereALearningRateIsTooHigh) {
  const ScratchFolder runs;
  const Ended ended = RunToEnd("skein", {"train", "--env", "CartPole-v1", "--set", "ppo.lr=1", "--steps", "61440",
                                         "--no-eval", "--runs-dir", runs.path(), "--name", "run"});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  // Each once.
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(ended.out, "warning: each update changes the policy very much")),
              SizeIs(2));
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(ended.out, "warning: the policy has stopped exploring")),
              SizeIs(2));
  EXPECT_THAT(runs.Read("run/log/learner.log"), HasSubstr("each update changes the policy very much"));
}

// The last checkpoint's digest of a short run on so many actors.
std::string ShortRunDigest(int actors, const std::vector<std::string>& transport) {
  const ScratchFolder runs;
  std::vector<std::string> arguments = absl::StrSplit(
      "train --env HalfCheetah-v5 --envs 8 --envs-per-runner 4 --runners 2 --steps 16384 --no-eval --name run "
      "--set rollout.steps_per_iteration=4096 --set ppo.minibatch_size=1024",
      ' ');
  arguments.insert(arguments.end(), {"--runs-dir", runs.path(), "--actors", std::to_string(actors)});
  for (const std::string& setting : transport) arguments.insert(arguments.end(), {"--set", "transport." + setting});
  const Ended ended = RunToEnd("skein", arguments, absl::Minutes(2));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_EQ(Account(runs.path() + "/run").rejected(), 0u);
  return Digest(runs.path() + "/run");
}

TEST(Train, CompressionChangesNoBit) {
  const std::string plain = ShortRunDigest(1, {});
  EXPECT_EQ(ShortRunDigest(2, {"trajectory_compression=zstd", "policy_compression=zstd"}), plain);
}

TEST(Train, RoundedRunsRepeatThemselves) {
  const std::vector<std::string> rounded = {"trajectory_precision=bf16", "policy_precision=bf16"};
  const std::string once = ShortRunDigest(1, rounded);
  std::vector<std::string> compressed = rounded;
  compressed.insert(compressed.end(), {"trajectory_compression=zstd", "policy_compression=zstd"});
  EXPECT_EQ(ShortRunDigest(2, compressed), once);
  EXPECT_NE(ShortRunDigest(1, {"trajectory_precision=bf16"}), once);
  EXPECT_NE(ShortRunDigest(1, {"policy_precision=bf16"}), once);
}

}  // namespace
}  // namespace skein
