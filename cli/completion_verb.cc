// SPDX-License-Identifier: Apache-2.0
// skein completion: scripts that complete verbs and flags.
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "base/command/arguments.h"
#include "base/command/command_table.h"
#include "base/command/completion.h"
#include "base/config/nearest_name.h"
#include "base/process/exit_code.h"
#include "cli/program_verbs.h"
#include "cli/verbs.h"
#include "env/registry.h"

namespace skein {
namespace {

std::vector<std::string> SettingChoices() {
  const std::vector<std::string>& paths = SettingPaths();
  std::vector<std::string> choices;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool section = i + 1 < paths.size() && absl::StartsWith(paths[i + 1], paths[i] + ".");
    if (!section) choices.push_back(paths[i] + "=");
  }
  return choices;
}

std::vector<std::string> EnvChoices() {
  std::vector<std::string> ids;
  for (const EnvInfo& env : ListEnvs()) ids.push_back(env.id);
  return ids;
}

// Environments and settings, as the choices of the flags and arguments that take them.
void AddChoices(Command* command) {
  for (Flag& argument : command->arguments) {
    if (argument.value == "ENV") argument.choices = EnvChoices();
  }
  for (Flag& flag : command->flags) {
    if (flag.name == "--env") {
      flag.choices = EnvChoices();
    } else if (flag.value == "KEY=VALUE") {
      flag.choices = SettingChoices();
    }
  }
  for (Command& verb : command->verbs) AddChoices(&verb);
}

absl::Status PrintCompletion(const CLI::App& app, const std::string& shell) {
  Command command = DescribeCommand(app);
  for (Command& verb : command.verbs) {
    auto elsewhere = DescribeProgramVerb(verb.name);
    if (!elsewhere.ok()) continue;  // Known here, or of a program that is not installed.
    verb.flags = std::move(elsewhere->flags);
    verb.arguments = std::move(elsewhere->arguments);
    verb.verbs = std::move(elsewhere->verbs);
  }
  AddChoices(&command);
  const auto script = FormatCompletion(command, shell);
  if (!script.ok()) return script.status();
  std::cout << *script << std::flush;
  return absl::OkStatus();
}

}  // namespace

void AddCompletion(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("completion", "Print a script that completes verbs, flags and settings");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "The shell that is to read it")->required()->check(OneOf({"bash", "zsh", "fish"}));
  verb->footer("Example:\n  source <(skein completion bash)");
  verb->callback(
      [=] { *action = [=] { return ReportAndExitCode("skein completion", PrintCompletion(*app, *shell)); }; });
}

}  // namespace skein
