// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "cli/verbs.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Parsed {
  std::optional<int> code;
  std::string out, error;
  bool has_action = false;
};

Parsed Parse(std::vector<std::string> arguments) {
  CLI::App app("Skein", "skein");
  app.require_subcommand(1);
  Action action;
  for (const auto add : {AddTrain, AddHead, AddWorker, AddStatus, AddProgramVerbs, AddEnvs}) add(&app, &action);
  arguments.insert(arguments.begin(), "skein");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Parsed parsed;
  parsed.code = ParseArguments(app, static_cast<int>(argv.size()), argv.data());
  parsed.out = testing::internal::GetCapturedStdout();
  parsed.error = testing::internal::GetCapturedStderr();
  parsed.has_action = action != nullptr;
  return parsed;
}

TEST(ParseArguments, EveryVerbShowsHelpThatEndsWithAnExample) {
  for (const char* verb : {"train", "head", "worker", "status", "envs"}) {
    const Parsed parsed = Parse({verb, "--help"});
    EXPECT_EQ(parsed.code, 0) << verb;
    const size_t example = parsed.out.rfind("Example:\n  skein ");
    EXPECT_NE(example, std::string::npos) << verb;
  }
}

TEST(NumberWithin, TakesNumbersOnly) {
  CLI::App app;
  double seconds = 0;
  app.add_option("--seconds", seconds)->check(NumberWithin(0.01, 3600));
  app.parse("--seconds 1e1");
  EXPECT_EQ(seconds, 10);
  for (const char* bad : {"nan", "inf", "0", "3601", "many", "-1"}) {
    EXPECT_THROW(app.parse(std::string("--seconds ") + bad), CLI::ParseError) << bad;
  }
}

TEST(OneOf, TakesTheWordsAndNamesTheNearest) {
  CLI::App app;
  std::string word;
  const CLI::Option* option = app.add_option("--resume", word)->check(OneOf({"auto", "must", "never"}));
  app.parse("--resume never");
  EXPECT_EQ(word, "never");
  EXPECT_THAT(option->get_type_name(), HasSubstr("{auto,must,never}"));
  const auto message = [&](const std::string& text) -> std::string {
    try {
      app.parse("--resume " + text);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("nevr"), "--resume: got 'nevr', want one of auto, must, never; the nearest is 'never'");
  EXPECT_EQ(message("sometimes"), "--resume: got 'sometimes', want one of auto, must, never");
  EXPECT_NE(message("Auto"), "");
}

TEST(WholeNumber, TakesExponentsIfTheNumberIsWhole) {
  CLI::App app;
  uint64_t number = 0;
  app.add_option("--steps", number)->transform(WholeNumber(1));
  const std::pair<const char*, uint64_t> good[] = {
      {"1e6", 1000000}, {"2.5E5", 250000}, {"1e+3", 1000}, {"007", 7}, {"18446744073709551615", UINT64_MAX}};
  for (const auto& [text, value] : good) {
    app.parse(std::string("--steps ") + text);
    EXPECT_EQ(number, value) << text;
  }
  for (const char* bad :
       {"0", "0e5", "1e-3", "1.5", "1.5e0", "2.", "e6", "inf", "1e300", "1e17", "0x10", "1e", "1e6e6"}) {
    EXPECT_THROW(app.parse(std::string("--steps ") + bad), CLI::ParseError) << bad;
  }
}

TEST(ParseArguments, UsageErrorsAre64AndOneLineWithAHint) {
  const std::vector<std::vector<std::string>> wrong = {
      {"train", "--no-such-flag"},
      {"train", "--steps", "many"},
      {"train", "--steps", "-1"},
      {"train", "--resume", "perhaps"},
      {"train", "--actors", "0"},
      {"head", "--port", "70000"},
      {"worker"},
      {"status", "--json", "surplus"},
  };
  for (const auto& arguments : wrong) {
    const Parsed parsed = Parse(arguments);
    EXPECT_EQ(parsed.code, 64) << arguments.back();
    EXPECT_EQ(std::count(parsed.error.begin(), parsed.error.end(), '\n'), 1) << parsed.error;
    EXPECT_THAT(parsed.error, HasSubstr("(try `skein " + arguments[0] + " --help`)"));
    EXPECT_FALSE(parsed.has_action);
  }
}

TEST(ParseArguments, NamesTheVerbsWhereThereIsNone) {
  EXPECT_THAT(Parse({"trian"}).error, AllOf(HasSubstr("no verb 'trian'"), HasSubstr("train, head, worker")));
  EXPECT_EQ(Parse({"trian"}).code, 64);
  EXPECT_EQ(Parse({}).code, 64);
}

TEST(ParseArguments, HelpAndVersionAreVerbsToo) {
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{{"train"}, {"status"}}) {
    std::vector<std::string> asked = {"help"}, flag = verb;
    asked.insert(asked.end(), verb.begin(), verb.end());
    flag.push_back("--help");
    EXPECT_EQ(Parse(asked).code, 0) << Parse(asked).error;
    EXPECT_EQ(Parse(asked).out, Parse(flag).out);
    EXPECT_THAT(Parse(asked).out, HasSubstr(verb.back()));
  }
  EXPECT_EQ(Parse({"help"}).out, Parse({"--help"}).out);
  EXPECT_EQ(Parse({"help", "trian"}).code, 64);
  EXPECT_THAT(Parse({"help", "trian"}).error, HasSubstr("no verb 'trian'; the nearest is 'train'"));
  for (const char* version : {"version", "-V"}) {
    EXPECT_EQ(Parse({version}).code, 0) << version;
    EXPECT_EQ(Parse({version}).out, Parse({"--version"}).out) << version;
  }
}

TEST(ParseArguments, SetTakesOneAssignmentAndMayBeRepeated) {
  EXPECT_TRUE(Parse({"train", "--set", "ppo.lr=1", "--set", "model.hidden=[64, 64]"}).has_action);
  EXPECT_EQ(Parse({"train", "--set", "ppo.lr=1", "ppo.clip=2"}).code, 64);
}

TEST(ParseArguments, VerbsOfOtherProgramsPassEverythingOn) {
  EXPECT_TRUE(Parse({"eval", "--checkpoint", "x", "--episodes", "3", "--json"}).has_action);
  EXPECT_TRUE(Parse({"bench", "scaling", "--out", "x"}).has_action);
  EXPECT_TRUE(Parse({"tune", "--env", "x"}).has_action);
  for (const char* verb : {"eval", "bench", "tune"}) EXPECT_TRUE(Parse({verb, "--help"}).has_action) << verb;
}

}  // namespace
}  // namespace skein
