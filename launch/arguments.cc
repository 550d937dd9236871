// SPDX-License-Identifier: Apache-2.0
#include "launch/arguments.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/process/exit_code.h"

namespace skein {
namespace {

int UsageError(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << absl::StrReplaceAll(message, {{"\n", " "}}) << " (try `" << command << " --help`)"
            << std::endl;
  return kExitUsage;
}

}  // namespace

std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv) {
  const auto verbs = app.get_subcommands([](CLI::App*) { return true; });
  if (!verbs.empty()) {
    const auto names =
        absl::StrJoin(verbs, ", ", [](std::string* out, CLI::App* verb) { out->append(verb->get_name()); });
    const std::string first = argc > 1 ? argv[1] : "";
    if (first.empty()) return UsageError(app.get_name(), absl::StrCat("what to do? Verbs are ", names));
    if (first[0] != '-' &&
        std::none_of(verbs.begin(), verbs.end(), [&](CLI::App* v) { return v->check_name(first); })) {
      return UsageError(app.get_name(), absl::StrCat("no verb '", first, "'; there are ", names));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    return UsageError(chosen.empty() ? app.get_name() : absl::StrCat(app.get_name(), " ", chosen[0]->get_name()),
                      error.what());
  }
  return std::nullopt;
}

CLI::Validator WholeNumber() {
  const auto check = [](std::string& text) -> std::string {
    uint64_t number = 0;
    const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
    if (!digits || !absl::SimpleAtoi(text, &number)) return absl::StrCat("got '", text, "', want a whole number");
    text = absl::StrCat(number);  // The library would read a leading 0 as octal.
    return "";
  };
  return CLI::Validator(check, "", "whole number");
}

CLI::Validator NumberWithin(double min, double max) {
  const auto check = [min, max](std::string& text) -> std::string {
    double number = 0;
    // Not a number is not within.
    if (absl::SimpleAtod(text, &number) && number >= min && number <= max) return "";
    return absl::StrCat("got '", text, "', want a number from ", min, " to ", max);
  };
  return CLI::Validator(check, absl::StrCat("FLOAT in [", min, " - ", max, "]"), "number within");
}

}  // namespace skein
