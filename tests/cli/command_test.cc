// SPDX-License-Identifier: Apache-2.0
// The skein command as a user types it: exit codes and what is left behind.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string text;  // Standard output and error.
};

std::string BinFolder() {
  const char* bin = std::getenv("SKEIN_BIN");
  return bin == nullptr ? ProgramFolder() + "/.." : std::string(bin);
}

Ran RunProgram(const std::string& program, const std::vector<std::string>& arguments) {
  const ScratchFolder folder;
  std::vector<std::string> argv = {BinFolder() + "/" + program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto process = Subprocess::Spawn({.argv = argv, .output_path = folder.path() + "/out"});
  EXPECT_TRUE(process.ok()) << process.status();
  Ran ran;
  ran.code = (*process)->Wait(absl::Seconds(30)).value_or(-1);
  ran.text = folder.Read("out");
  return ran;
}

Ran Skein(const std::vector<std::string>& arguments) { return RunProgram("skein", arguments); }

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

TEST(SkeinCommand, WithoutAnEnvironmentShowsTwoExamplesThatFitTheVerb) {
  for (const std::string verb : {"train", "head", "tune"}) {
    const Ran ran = Skein({verb});
    EXPECT_EQ(ran.code, 64);
    EXPECT_THAT(ran.text,
                AllOf(HasSubstr(verb + ": which environment? Examples: `skein " + verb + " --env CartPole-v1`, "),
                      HasSubstr("`skein " + verb + " --config mine.yaml`")));
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

TEST(SkeinCommand, EveryProgramSaysItsVersionAndThoseOfItsLibraries) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> programs = {
      {"skein", {"gRPC", "protobuf", "MuJoCo", "LibTorch"}},
      {"skein-actor", {"gRPC", "protobuf", "MuJoCo"}},
      {"skein-coordinator", {"gRPC", "protobuf"}},
      {"skein-eval", {"gRPC", "protobuf", "MuJoCo"}},
      {"skein-fit", {"gRPC", "protobuf", "LibTorch"}},
      {"skein-policy", {"gRPC", "protobuf", "MuJoCo"}},
      {"skein-learner", {"gRPC", "protobuf", "MuJoCo", "LibTorch"}},
      {"skein-bench", {"gRPC", "protobuf", "MuJoCo", "LibTorch"}}};
  for (const auto& [program, libraries] : programs) {
    const Ran ran = RunProgram(program, {"--version"});
    EXPECT_EQ(ran.code, 0) << program;
    EXPECT_THAT(ran.text,
                ContainsRegex("^" + program + " [0-9]+\\.[0-9]+\\.[0-9]+\ncommit   ([0-9a-f]{12}|unknown)\n"));
    for (const std::string& library : libraries) {
      EXPECT_THAT(ran.text, ContainsRegex("\n" + library + " +[0-9]+\\.[0-9]+")) << program;
    }
  }
}

TEST(SkeinCommand, OutputThatIsLostIsAnError) {
  const ScratchFolder folder;
  folder.Write("config.yaml", "");
  const std::vector<std::string> commands = {"skein envs",
                                             "skein envs --json",
                                             "skein --help",
                                             "skein --version",
                                             "skein train --help",
                                             "skein completion bash",
                                             "skein certs init " + folder.path() + "/credentials",
                                             "skein-eval --help",
                                             "skein eval --env CartPole-v1 --baseline random --episodes 1 --json",
                                             "skein-actor --help",
                                             "skein-coordinator --version"};
  for (const std::string& command : commands) {
    const std::string line = BinFolder() + "/" + command + " >/dev/full";
    auto process = Subprocess::Spawn({.argv = {"/bin/sh", "-c", line}, .output_path = folder.path() + "/error"});
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->Wait(absl::Seconds(30)), 74) << command;
    EXPECT_THAT(folder.Read("error"), ContainsRegex("^skein[a-z -]*: standard output cannot be written: .*\n$"));
    std::filesystem::remove(folder.path() + "/error");
  }
}

TEST(SkeinCommand, SaysWhereItDrew) {
  const ScratchFolder folder;
  const std::string map = folder.path() + "/map.svg";
  const std::vector<std::string> arguments = {"eval",       "--baseline", "greedy",   "--env", "UavNavigate-v0",
                                              "--episodes", "1",          "--render", map};
  EXPECT_THAT(Skein(arguments).text, HasSubstr("\ndrew episode 0 into " + map + "\n"));
  EXPECT_TRUE(std::filesystem::exists(map));
}

TEST(SkeinCommand, AnEpisodeToDrawNeedsAFile) {
  const Ran ran = Skein({"eval", "--baseline", "random", "--env", "CartPole-v1", "--render-episode", "1"});
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.text, HasSubstr("--render-episode requires --render"));
}

TEST(SkeinCommand, NamesTheNearestValue) {
  for (const char* verb : {"train", "head", "sweep"}) {
    EXPECT_THAT(Skein({verb, "--resume", "nevr"}).text,
                HasSubstr("--resume: got 'nevr', want one of auto, must, never; the nearest is 'never'"));
  }
  EXPECT_THAT(Skein({"export", "--format", "onx"}).text, HasSubstr("the nearest is 'onnx'"));
  EXPECT_THAT(Skein({"resources", "--as", "slrum"}).text, HasSubstr("the nearest is 'slurm'"));
  EXPECT_THAT(Skein({"completion", "bsh"}).text, HasSubstr("the nearest is 'bash'"));
  EXPECT_THAT(Skein({"tune", "--algorithm", "pppo"}).text, HasSubstr("the nearest is 'ppo'"));
  EXPECT_THAT(Skein({"eval", "--env", "CartPole-v1", "--baseline", "randm"}).text,
              HasSubstr("want random or greedy; the nearest is 'random'"));
  EXPECT_THAT(Skein({"train", "--recipe", "stduy"}).text, HasSubstr("the nearest is 'study'"));
  EXPECT_THAT(Skein({"train", "--env", "CartPole-v1", "--set", "ppo.lr_schedule=lineer"}).text,
              HasSubstr("got 'lineer'; the nearest is 'linear'"));
}

TEST(SkeinCommand, NamesTheNearestVerbFlagOrSetting) {
  EXPECT_THAT(Skein({"trian"}).text, HasSubstr("no verb 'trian'; the nearest is 'train'"));
  EXPECT_THAT(Skein({"certs", "inti"}).text, HasSubstr("skein certs: no verb 'inti'; the nearest is 'init'"));
  EXPECT_THAT(Skein({"certs"}).text, HasSubstr("what to do? Verbs are init"));
  EXPECT_THAT(Skein({"train", "--stpes", "3"}).text, HasSubstr("no flag '--stpes'; the nearest is '--steps'"));
  EXPECT_THAT(Skein({"train", "--num-envs=3"}).text, HasSubstr("no flag '--num-envs'; the nearest is '--envs'"));
  EXPECT_THAT(Skein({"train", "--learning-rate", "1"}).text,
              HasSubstr("no flag '--learning-rate'; the nearest is the setting --set ppo.lr=VALUE"));
  EXPECT_THAT(Skein({"train", "--env", "CartPole-v1", "--set", "ppo.learning_rate=1"}).text,
              HasSubstr("unknown key 'ppo.learning_rate'; the nearest is 'ppo.lr'"));
  EXPECT_THAT(Skein({"train", "--evn", "x"}).text, HasSubstr("no flag '--evn'; the nearest is '--env'"));
  EXPECT_THAT(Skein({"train", "--env", "CartPole-v1", "--set", "gama=1"}).text,
              HasSubstr("unknown key 'gama'; the nearest is 'ppo.gamma'"));
  EXPECT_THAT(Skein({"foo"}).text, Not(HasSubstr("nearest")));
  EXPECT_THAT(Skein({"envs", "Foo"}).text, Not(HasSubstr("did you mean")));
  EXPECT_THAT(Skein({"envs", "Ant"}).text, HasSubstr("did you mean 'Ant-v5'?"));
}

TEST(SkeinCommand, HelpIsAVerbToo) {
  EXPECT_EQ(Skein({"help", "train"}).text, Skein({"train", "--help"}).text);
  EXPECT_EQ(Skein({"help", "certs", "init"}).text, Skein({"certs", "init", "--help"}).text);
  EXPECT_EQ(Skein({"help", "bench"}).text, Skein({"bench", "--help"}).text);
  EXPECT_EQ(Skein({"help"}).code, 0);
  EXPECT_EQ(Skein({"version"}).text, Skein({"--version"}).text);
  EXPECT_EQ(RunProgram("skein-learner", {"-V"}).text, RunProgram("skein-learner", {"--version"}).text);
}

TEST(SkeinCommand, DevelopersVerbsAreNotInTheHelp) {
  EXPECT_THAT(Skein({"--help"}).text, AllOf(HasSubstr("drain"), Not(HasSubstr("check-history"))));
  EXPECT_THAT(Skein({"chekc-history"}).text, Not(HasSubstr("'check-history'")));
}

// Whatever is typed or read, a message is one line without control characters, and no longer than what it says of it.
TEST(SkeinCommand, MessagesEscapeAndCutWhatTheyQuote) {
  const std::string bad = "\x1b[31m\nskein: done\a " + std::string(5000, 'x') + " y";
  const ScratchFolder folder;
  folder.Write("key.yaml", "\"ppo\\x1b[31m\\n" + std::string(5000, 'k') + "\": 1\n");
  folder.Write("value.yaml", "ppo:\n  lr: \"1\\x1b[31m\\n" + std::string(5000, 'v') + " w\"\n");
  std::vector<std::vector<std::string>> commands = {
      {bad},
      {"--" + bad},
      {"envs", bad},
      {"train", "--" + bad},
      {"train", "--config", folder.path() + "/key.yaml"},
      {"train", "--config", folder.path() + "/value.yaml"},
      {"worker", "--address", bad},
      {"worker", "--address", "127.0.0.1:1", "--timeout", bad},
      {"worker", "--address", "127.0.0.1:1", "--metrics", bad},
      {"status", "--address", bad},
      {"top", "--address", "127.0.0.1:1", "--interval", bad},
      {"drain", bad, "--address", "127.0.0.1:1"},
      {"drain", "actor-1", "--timeout", bad},
      {"certs", "init", folder.path() + "/c", "--host", bad},
      {"certs", "init", folder.path() + "/c", "--days", bad},
      {"eval", "--checkpoint", bad},
      {"eval", "--env", "CartPole-v1", "--baseline", bad},
      {"eval", "--env", bad, "--baseline", "random"},
      {"completion", bad},
      {"check-history", bad},
  };
  for (const char* flag : {"--config", "--env", "--steps", "--seed", "--name", "--envs", "--resume", "--device",
                           "--port", "--set", "--learners", "--runners", "--actors", "--token-file", "--tls-cert"}) {
    commands.push_back({"train", "--runs-dir", folder.path() + "/runs", flag, bad});
    commands.push_back({"train", "--runs-dir", folder.path() + "/runs", std::string(flag) + "=" + bad});
  }
  for (const std::vector<std::string>& command : commands) {
    const Ran ran = Skein(command);
    const std::string what = command[0].substr(0, 40) + " " + command.back().substr(0, 20);
    EXPECT_NE(ran.code, 0) << what;
    EXPECT_NE(ran.code, 70) << what << ran.text;
    EXPECT_EQ(std::count_if(ran.text.begin(), ran.text.end(), absl::ascii_iscntrl), 1) << ran.text;  // The newline.
    EXPECT_LT(ran.text.size(), 1000u) << ran.text;
  }
}

TEST(SkeinCommand, RefusesAConfigurationThatIsNoFile) {
  const ScratchFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Ran ran = Skein({"train", "--config", pipe, "--runs-dir", folder.path() + "/runs"});
  EXPECT_EQ(ran.code, 64);
  EXPECT_EQ(ran.text, "skein train: cannot read " + pipe + ": is not a regular file\n");
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
  const std::string fragment =
      R"("event":"batch","actor":"actor-1","generation":7,"sequence":1,"env_steps":8,"result":"accepted"})";
  const ScratchFolder history;
  EXPECT_EQ(Skein({"check-history", history.path()}).code, 65);
  EXPECT_EQ(Skein({"check-history", history.path() + "/none"}).code, 65);
  history.Write("1.jsonl", R"({"t":1.5,"pid":1,)" + fragment + "\n");
  const Ran well = Skein({"check-history", history.path()});
  EXPECT_EQ(well.code, 0);
  EXPECT_THAT(well.text, AllOf(HasSubstr("batches: accepted 1\n"), HasSubstr("everything that must hold holds")));
  // Another learner accepts it again.
  history.Write("2.jsonl", R"({"t":2.5,"pid":2,)" + fragment + "\n");
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

// Paths may have any name.
TEST(SkeinCommand, WhatItPrintsOfPathsIsEscaped) {
  const ScratchFolder folder;
  const std::string bad = folder.path() + "/a\x1b[31m\nb";
  std::filesystem::create_directories(bad);
  const Ran certificates = Skein({"certs", "init", bad + "/credentials"});
  EXPECT_EQ(certificates.code, 0) << certificates.text;
  const Ran trained = Skein({"train", "--env", "CartPole-v1", "--steps", "2048", "--runs-dir", bad, "--name", "run",
                             "--set", "eval.episodes=1"});
  EXPECT_EQ(trained.code, 0) << trained.text;
  EXPECT_THAT(trained.text, HasSubstr("run directory: " + folder.path() + "/a\\x1b[31m\\nb/run\n"));
  const Ran evaluated = Skein({"eval", "--checkpoint", bad + "/run", "--episodes", "1"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.text;
  const Ran drawn = Skein(
      {"eval", "--baseline", "greedy", "--env", "UavNavigate-v0", "--episodes", "1", "--render", bad + "/map.svg"});
  EXPECT_EQ(drawn.code, 0) << drawn.text;
  for (const Ran& ran : {certificates, trained, evaluated, drawn}) {
    EXPECT_THAT(ran.text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\nb/"))));
  }
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
  EXPECT_EQ(ran.text,
            "skein status: no coordinator answers at 127.0.0.1:1; `skein train` and `skein head` print the address for "
            "--address when they start\n");
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
  EXPECT_THAT(Skein({"worker"}).text, HasSubstr("--address, or --sweep DIR, is required"));
  EXPECT_EQ(Skein({"worker", "--sweep", "x", "--address", "127.0.0.1:1"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--sweep", "/nowhere", "--timeout", "10ms"}).code, 69);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--timeout", "soon"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--runners", "-3"}).code, 64);
  EXPECT_EQ(Skein({"worker", "--address", "127.0.0.1:1", "--metrics", "x"}).code, 64);
}

TEST(SkeinCommand, WorkerThatWaitsForItsHeadEndsOnSigterm) {
  const ScratchFolder folder;
  auto process =
      Subprocess::Spawn({.argv = {BinFolder() + "/skein", "worker", "--address", "127.0.0.1:1", "--timeout", "10m"},
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
