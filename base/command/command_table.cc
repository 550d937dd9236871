// SPDX-License-Identifier: Apache-2.0
#include "base/command/command_table.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace skein {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Flag, name, value, help, fallback, variable, choices, required)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Command, name, about, footer, hidden, flags, arguments, verbs)

namespace {

// The library writes the choices of OneOf as "TEXT:{auto,must,never}".
std::vector<std::string> ChoicesOf(const std::string& type) {
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

Flag DescribeOption(const CLI::Option& option) {
  Flag flag;
  flag.name = option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
  flag.value = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  flag.help = option.get_description();
  flag.fallback = option.get_default_str();
  flag.variable = option.get_envname();
  flag.choices = ChoicesOf(flag.value);
  flag.required = option.get_required();
  if (!flag.choices.empty()) flag.value = "WHICH";
  // CLI::Range makes the type "INT:INT in [0 - 9]".
  if (const size_t bounds = flag.value.find('['); bounds != std::string::npos) {
    absl::StrAppend(&flag.help, " ", flag.value.substr(bounds));
    flag.value = flag.value.substr(0, flag.value.find_first_of(": "));
  }
  return flag;
}

}  // namespace

Command DescribeCommand(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.about = app.get_description();
  command.footer = app.get_footer();
  command.hidden = app.get_group().empty();
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // Hidden.
    (option->nonpositional() ? command.flags : command.arguments).push_back(DescribeOption(*option));
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.verbs.push_back(DescribeCommand(*verb));
  }
  return command;
}

std::string ToJson(const Command& command) {
  return nlohmann::json(command).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<Command> CommandFromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  try {
    if (!json.is_discarded()) return json.get<Command>();
  } catch (const nlohmann::json::exception&) {
  }
  return absl::InvalidArgumentError("this is no description of a command");
}

}  // namespace skein
