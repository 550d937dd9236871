// SPDX-License-Identifier: Apache-2.0
// The skein command as a user types it: exit codes and what is left behind.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string text;  // Standard output and error.
};

std::string Program() {
  const char* bin = std::getenv("SKEIN_BIN");
  return (bin == nullptr ? ProgramFolder() + "/.." : std::string(bin)) + "/skein";
}

Ran Skein(const std::vector<std::string>& arguments) {
  const ScratchFolder folder;
  std::vector<std::string> argv = {Program()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto process = Subprocess::Spawn({.argv = argv, .output_path = folder.path() + "/out"});
  EXPECT_TRUE(process.ok()) << process.status();
  Ran ran;
  ran.code = (*process)->Wait(absl::Seconds(30)).value_or(-1);
  ran.text = folder.Read("out");
  return ran;
}

TEST(SkeinCommand, ListsEnvironments) {
  const Ran ran = Skein({"envs"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("CartPole-v1"), HasSubstr("HalfCheetah-v5"), HasSubstr("MuJoCo ")));
  EXPECT_THAT(Skein({"envs", "--json"}).text, StartsWith("["));
}

TEST(SkeinCommand, NamesAndPrintsTheRecipeOfAnEnvironment) {
  const Ran ran = Skein({"envs", "CartPole-v1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("solved at a return of 475"), HasSubstr("recipe: configs/cartpole_ppo.yaml")));
  EXPECT_THAT(Skein({"envs", "CartPole-v1", "--json"}).text, HasSubstr("\"recipe\": \"configs/cartpole_ppo.yaml\""));
  const Ran recipe = Skein({"envs", "CartPole-v1", "--recipe"});
  EXPECT_EQ(recipe.code, 0);
  EXPECT_THAT(recipe.text, AllOf(HasSubstr("id: CartPole-v1\n"), HasSubstr("\nppo:\n")));
  EXPECT_EQ(Skein({"envs", "CartPole-v7"}).code, 64);
  EXPECT_EQ(Skein({"envs", "--recipe"}).code, 64);
}

TEST(SkeinCommand, TrainWithoutAnEnvironmentShowsTwoExamples) {
  for (const std::string verb : {"train", "head"}) {
    const Ran ran = Skein({verb});
    EXPECT_EQ(ran.code, 64);
    EXPECT_THAT(ran.text, AllOf(StartsWith("skein " + verb + ": which environment?"),
                                HasSubstr("`skein train --env CartPole-v1`"),
                                HasSubstr("`skein train --config mine.yaml --seed 2`")));
    EXPECT_EQ(std::count(ran.text.begin(), ran.text.end(), '\n'), 1) << ran.text;
  }
}

TEST(SkeinCommand, ShowsHelpAndVersion) {
  EXPECT_EQ(Skein({"--help"}).code, 0);
  EXPECT_THAT(Skein({"--version"}).text, StartsWith("skein "));
  const Ran eval = Skein({"eval", "--help"});
  EXPECT_EQ(eval.code, 0);
  EXPECT_THAT(eval.text, AllOf(HasSubstr("skein eval"), HasSubstr("Example:")));
}

TEST(SkeinCommand, EndsWith64AndLeavesNothingBehindForAMistake) {
  const ScratchFolder folder;
  const std::string runs = folder.path() + "/runs";
  for (const std::vector<std::string>& mistake : std::vector<std::vector<std::string>>{{"--env", "HalfCheetah-v6"},
                                                                                       {"--set", "ppo.learning_rate=1"},
                                                                                       {"--set", "ppo.lr=.nan"},
                                                                                       {"--set", "ppo.epochs=many"},
                                                                                       {"--name", "a/b"},
                                                                                       {"--runners", "0"},
                                                                                       {"--seed", "one"}}) {
    std::vector<std::string> arguments = {"train", "--runs-dir", runs};
    arguments.insert(arguments.end(), mistake.begin(), mistake.end());
    const Ran ran = Skein(arguments);
    EXPECT_EQ(ran.code, 64) << mistake.back() << ": " << ran.text;
    EXPECT_THAT(ran.text, StartsWith("skein train: "));
    EXPECT_EQ(std::count(ran.text.begin(), ran.text.end(), '\n'), 1) << ran.text;
  }
  EXPECT_FALSE(std::filesystem::exists(runs));
}

TEST(SkeinCommand, JudgesAHistory) {
  const std::string batch =
      R"("event":"batch","actor":"actor-1","generation":7,"sequence":1,"env_steps":8,"result":"accepted"})";
  const ScratchFolder history;
  EXPECT_EQ(Skein({"check-history", history.path()}).code, 65);
  EXPECT_EQ(Skein({"check-history", history.path() + "/none"}).code, 65);
  history.Write("1.jsonl", R"({"t":1.5,"pid":1,)" + batch + "\n");
  const Ran well = Skein({"check-history", history.path()});
  EXPECT_EQ(well.code, 0);
  EXPECT_THAT(well.text, AllOf(HasSubstr("batches: accepted 1\n"), HasSubstr("everything that must hold holds")));
  // Another learner accepts it again.
  history.Write("2.jsonl", R"({"t":2.5,"pid":2,)" + batch + "\n");
  const Ran broken = Skein({"check-history", history.path()});
  EXPECT_EQ(broken.code, 65);
  EXPECT_THAT(broken.text, AllOf(HasSubstr("BREACH: batch 1 of actor-1 generation 7 was accepted twice"),
                                 HasSubstr("1 breaches of what must hold")));
  EXPECT_THAT(Skein({"check-history", history.path(), "--json"}).text,
              AllOf(HasSubstr(R"("accepted_more_than_once": 1)"), HasSubstr(R"("processes": 2)")));
  history.Write("3.jsonl", "{\"t\":3,\"pid\":3}\n");
  const Ran unreadable = Skein({"check-history", history.path()});
  EXPECT_EQ(unreadable.code, 65);
  EXPECT_THAT(unreadable.text, HasSubstr("3.jsonl: line 1 is no event"));
}

TEST(SkeinCommand, EndsWith65WithoutACheckpoint) {
  const Ran ran = Skein({"eval", "--checkpoint", "/nowhere"});
  EXPECT_EQ(ran.code, 65) << ran.text;
  EXPECT_THAT(ran.text, AllOf(StartsWith("skein eval: "), HasSubstr("/nowhere")));
}

TEST(SkeinCommand, EvaluatesABaselineAndRefusesWhatDoesNotGoTogether) {
  const Ran ran = Skein({"eval", "--env", "UavNavigate-v0", "--baseline", "greedy", "--episodes", "2", "--seed", "1000",
                         "--set", "env.uav.uavs=20", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, AllOf(HasSubstr("\"policy\":\"greedy\""), HasSubstr("\"success_rate\"")));
  for (const std::vector<std::string>& mistake : std::vector<std::vector<std::string>>{
           {},
           {"--baseline", "random"},
           {"--baseline", "random", "--env", "UavCover-v0", "--set", "env.uav.radius=-1"},
           {"--baseline", "greedy", "--env", "UavCover-v0"},
           {"--baseline", "random", "--env", "CartPole-v1", "--checkpoint", "/nowhere"}}) {
    std::vector<std::string> arguments = {"eval"};
    arguments.insert(arguments.end(), mistake.begin(), mistake.end());
    const Ran refused = Skein(arguments);
    EXPECT_EQ(refused.code, 64) << refused.text;
    EXPECT_EQ(std::count(refused.text.begin(), refused.text.end(), '\n'), 1) << refused.text;
  }
}

TEST(SkeinCommand, EndsWith69WhereNobodyAnswers) {
  const Ran ran = Skein({"status", "--address", "127.0.0.1:1"});
  EXPECT_EQ(ran.code, 69) << ran.text;
  EXPECT_EQ(ran.text, "skein status: no coordinator answers at 127.0.0.1:1\n");
}

TEST(SkeinCommand, MakesCertificatesOnce) {
  const ScratchFolder folder;
  const std::string where = folder.path() + "/credentials";
  const Ran made = Skein({"certs", "init", where, "--days", "2", "--host", "head.example.org", "--host", "10.0.0.7"});
  EXPECT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("--token-file " + where + "/token"));
  EXPECT_EQ(folder.Read("credentials/token").size(), 65u);  // 64 digits and a newline.
  const Ran again = Skein({"certs", "init", where});
  EXPECT_EQ(again.code, 64);
  EXPECT_THAT(again.text, HasSubstr("is there already"));
  for (const std::vector<std::string>& mistake : std::vector<std::vector<std::string>>{
           {}, {"init"}, {"init", "x", "--days", "0"}, {"init", "x", "--host", "a b"}}) {
    std::vector<std::string> arguments = {"certs"};
    arguments.insert(arguments.end(), mistake.begin(), mistake.end());
    EXPECT_EQ(Skein(arguments).code, 64);
  }
}

TEST(SkeinCommand, WorkerChecksItsFlagsFirst) {
  EXPECT_EQ(Skein({"worker", "--address", "nonsense"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--timeout", "soon"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--runners", "-3"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--metrics", "x"}).code, 64);
}

TEST(SkeinCommand, WorkerThatWaitsForItsHeadEndsOnSigterm) {
  const ScratchFolder folder;
  auto process = Subprocess::Spawn({.argv = {Program(), "worker", "--address", "127.0.0.1:1", "--timeout", "10m"},
                                    .output_path = folder.path() + "/out",
                                    .extra_env = {"SKEIN_LOG=debug"}});
  ASSERT_TRUE(process.ok()) << process.status();
  while (folder.Read("out").find("waiting for the coordinator at 127.0.0.1:1") == std::string::npos) {
    ASSERT_FALSE((*process)->Wait(absl::Milliseconds(1))) << folder.Read("out");
  }
  (*process)->Signal(SIGTERM);
  EXPECT_EQ((*process)->Wait(absl::Seconds(30)), 75);
  EXPECT_THAT(folder.Read("out"), EndsWith("skein-actor: stopped before the coordinator at 127.0.0.1:1 answered\n"));
}

}  // namespace
}  // namespace skein
