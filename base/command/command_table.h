// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"

// The verbs and flags of a program as data, for completion scripts, man pages and suggestions. CLI11's App is the one
// place where they are written.   CLI::App -> Describe -> Command -> completion.h, man_page.h, NearestName
namespace skein {

struct Flag {
  std::string name;   // "--steps"; of an argument without a flag its name, "member".
  std::string value;  // What it takes, e.g. "FILE"; empty = it is a switch.
  std::string help;
  std::string fallback;              // The default, as text; empty = none is shown.
  std::string variable;              // Environment variable that replaces it; empty = none.
  std::vector<std::string> choices;  // The only values; for completion. Empty = any.
  bool required = false;
};

struct Command {
  std::string name;    // "train"; of a program "skein" or "skein eval".
  std::string about;   // One sentence.
  std::string footer;  // Examples.
  bool hidden = false;
  std::vector<Flag> flags;
  std::vector<Flag> arguments;  // Without a flag, in order.
  std::vector<Command> verbs;
};

Command Describe(const CLI::App& app);

// One line of JSON, for other programs.
std::string ToJson(const Command& command);
// InvalidArgument: `text` was not made by ToJson().
absl::StatusOr<Command> CommandFromJson(const std::string& text);

}  // namespace skein
