// SPDX-License-Identifier: Apache-2.0
#include "base/command/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/command/command_table.h"
#include "base/command/man_page.h"
#include "base/config/nearest_name.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

// The library's own messages repeat arguments: those that are long are cut.
std::string CutArguments(std::string message, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);  // Of --flag=value; else all of it.
    for (const std::string& text : {argument, value}) {
      if (text.size() > kShownCharacters) message = absl::StrReplaceAll(message, {{text, Shown(text)}});
    }
  }
  return message;
}

int UsageError(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << OneLine(message) << " (try `" << command << " --help`)" << std::endl;
  return kExitUsage;
}

std::vector<std::string> VisibleVerbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::string NoSuchVerb(const CLI::App& app, const std::string& typed) {
  const std::vector<std::string> names = VisibleVerbs(app);
  return absl::StrCat("no verb ", Quoted(typed), NearestHint(typed, names, '-'), "; there are ",
                      absl::StrJoin(names, ", "));
}

std::string LacksVerb(const CLI::App& app) {
  return absl::StrCat("what to do? Verbs are ", absl::StrJoin(VisibleVerbs(app), ", "));
}

// For a flag that the verb does not have: its nearest one, or the setting that --set can give and that is nearer.
std::string NoSuchFlag(const CLI::App& app, const std::string& typed) {
  const std::string flag = typed.substr(0, typed.find('='));
  std::vector<std::string> names;
  for (const Flag& known : DescribeCommand(app).flags) names.push_back(known.name);
  std::string suggestion = NearestHint(flag, names, '-');
  if (std::count(names.begin(), names.end(), "--set") > 0) {
    const std::string key(absl::StripPrefix(flag, "--"));
    const NearestSetting setting = FindNearestSetting(absl::StrReplaceAll(key, {{"-", "_"}}));
    if (setting.edits <= 1 && setting.edits + 1 < FindNearestName(flag, names, '-').edits) {
      suggestion = absl::StrCat("; the nearest is the setting --set ", setting.path, "=VALUE");
    }
  }
  return absl::StrCat("no flag ", Quoted(flag), suggestion);
}

// The verb that was given, or a verb of that; the program itself if none was.
const CLI::App& ChosenVerb(const CLI::App& app, std::string* command) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return app;
  absl::StrAppend(command, " ", chosen[0]->get_name());
  return ChosenVerb(*chosen[0], command);
}

// What is said of arguments that were not expected.
std::string DescribeExtras(const CLI::App& verb) {
  const std::vector<std::string> extras = verb.remaining();
  const std::string first = extras.empty() ? "" : extras[0];
  if (first.size() > 1 && first[0] == '-') return NoSuchFlag(verb, first);
  if (!VisibleVerbs(verb).empty()) return NoSuchVerb(verb, first);
  return absl::StrCat("the argument ", Quoted(first), " is not expected");
}

std::optional<uint64_t> ParseWhole(const std::string& text) {
  constexpr double kExact = 9007199254740992;  // 2^53: up to there a double has every whole number.
  uint64_t number = 0;
  if (text.empty() || !absl::ascii_isdigit(text[0])) return std::nullopt;
  if (std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    return absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
  }
  double value = 0;
  const bool exponent =
      text.find_first_not_of("0123456789.eE+") == std::string::npos && text.find_first_of("eE") != std::string::npos;
  if (!exponent || !absl::SimpleAtod(text, &value) || value > kExact || value != std::floor(value)) return std::nullopt;
  return static_cast<uint64_t>(value);
}

int Print(const std::string& program, const std::string& text) {
  std::cout << text << std::endl;
  return FinishOutput(program.c_str(), kExitOk);
}

}  // namespace

std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv, const std::vector<LibraryVersion>& libraries) {
  const std::string name = app.get_name();
  app.set_version_flag("--version", VersionText(absl::StrReplaceAll(name, {{" ", "-"}}), libraries),
                       "Print the versions of the program and of its libraries");
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--print-flags") return Print(name, ToJson(DescribeCommand(app)));
  if (first == "--print-man-page") return Print(name, FormatManPage(DescribeCommand(app)));
  if (first.empty() && !VisibleVerbs(app).empty()) return UsageError(name, LacksVerb(app));
  std::vector<char*> arguments(argv, argv + argc);
  std::string help = "--help", version = "--version";
  if (first == "-V" || (first == "version" && argc == 2 && !VisibleVerbs(app).empty())) arguments[1] = version.data();
  if (first == "help" && !VisibleVerbs(app).empty()) {
    const auto asked = [&](const CLI::App* verb) { return argc > 2 && verb->get_name() == argv[2]; };
    if (argc > 2 && std::as_const(app).get_subcommands(asked).empty()) {
      return UsageError(name, NoSuchVerb(app, argv[2]));
    }
    arguments.erase(arguments.begin() + 1);
    arguments.push_back(help.data());
  }
  std::string command = name;
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& success) {
    return FinishOutput(name.c_str(), app.exit(success));
  } catch (const CLI::ExtrasError&) {
    const CLI::App& verb = ChosenVerb(app, &command);
    return UsageError(command, DescribeExtras(verb));
  } catch (const CLI::ParseError& error) {
    const CLI::App& verb = ChosenVerb(app, &command);
    if (VisibleVerbs(verb).empty()) return UsageError(command, CutArguments(error.what(), argc, argv));
    return UsageError(command, verb.remaining().empty() ? LacksVerb(verb) : DescribeExtras(verb));
  }
  return std::nullopt;
}

CLI::Validator WholeNumber(uint64_t least) {
  const auto check = [least](std::string& text) -> std::string {
    const std::optional<uint64_t> number = ParseWhole(text);
    if (!number || *number < least) {
      return absl::StrCat("got ", Quoted(text), ", want a whole number",
                          least > 0 ? absl::StrCat(" from ", least) : "");
    }
    text = absl::StrCat(*number);  // The library would read a leading 0 as octal.
    return "";
  };
  return CLI::Validator(check, "", "whole number");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  const std::string description = absl::StrCat("{", absl::StrJoin(words, ","), "}");
  const auto check = [words = std::move(words)](std::string& text) -> std::string {
    if (std::count(words.begin(), words.end(), text) > 0) return "";
    return absl::StrCat("got ", Quoted(text), ", want one of ", absl::StrJoin(words, ", "),
                        NearestHint(text, words, '-'));
  };
  return CLI::Validator(check, description, "one of");
}

CLI::Validator NumberWithin(double min, double max) {
  const auto check = [min, max](std::string& text) -> std::string {
    double number = 0;
    // Not a number is not within.
    if (absl::SimpleAtod(text, &number) && number >= min && number <= max) return "";
    return absl::StrCat("got ", Quoted(text), ", want a number from ", min, " to ", max);
  };
  return CLI::Validator(check, absl::StrCat("FLOAT in [", min, " - ", max, "]"), "number within");
}

}  // namespace skein
