// SPDX-License-Identifier: Apache-2.0
// skein eval, env, fit, detect, bench and tune, for instance: verbs that other programs know, with their flags; the
// whole command line goes there.
#include "cli/program_verbs.h"

#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"
#include "cli/replace_process.h"
#include "cli/verbs.h"
#include "launch/child.h"

namespace skein {
namespace {

struct ProgramVerb {
  const char* name;
  const char* help;
  const char* program;
  const char* first;  // Inserted before the user's arguments; nullptr = nothing.
};

constexpr ProgramVerb kVerbs[] = {
    {"eval", "Evaluate a checkpoint with deterministic actions", "skein-eval", nullptr},
    {"export", "Write a checkpoint's policy as one file for other programs: ONNX, safetensors or C", "skein-policy",
     "export"},
    {"serve", "Serve actions of a checkpoint's policy over gRPC and HTTP", "skein-policy", "serve"},
    {"env", "Check an environment, or serve it to actors on other machines", "skein-policy", "env"},
    {"fit", "Train a model of sequences from files", "skein-fit", "fit"},
    {"detect", "Judge sequences by a model that skein fit has trained", "skein-fit", "detect"},
    {"bench", "Measure acting, env, rollout, serve, stream, learner, fit, train, tensor or scaling against its limit",
     "skein-bench", nullptr},
    {"tune", "Measure how many runners and environments suit this node", "skein-bench", "tune"}};

}  // namespace

void AddProgramVerbs(CLI::App* app, Action* action) {
  for (const ProgramVerb& known : kVerbs) {
    CLI::App* verb = app->add_subcommand(known.name, known.help);
    verb->set_help_flag();
    verb->prefix_command();
    verb->callback([=] {
      std::vector<std::string> arguments;
      if (known.first != nullptr) arguments.push_back(known.first);
      const std::vector<std::string> typed = verb->remaining();
      arguments.insert(arguments.end(), typed.begin(), typed.end());
      *action = [=] {
        return ReportAndExitCode(absl::StrCat("skein ", known.name).c_str(),
                                 ReplaceProcess(ProgramFolder(), known.program, arguments));
      };
    });
  }
}

absl::StatusOr<Command> DescribeProgramVerb(const std::string& verb) {
  constexpr absl::Duration kDeadline = absl::Seconds(30);
  for (const ProgramVerb& known : kVerbs) {
    if (verb != known.name) continue;
    const auto program = FindProgram(ProgramFolder(), known.program);
    if (!program.ok()) return program.status();
    auto process = Subprocess::Spawn({.argv = {*program, "--print-flags"}, .capture_stdout = true});
    if (!process.ok()) return process.status();
    const auto line = (*process)->ReadLine(kDeadline);
    if (!line.ok()) return line.status();
    auto command = CommandFromJson(*line);
    if (!command.ok() || known.first == nullptr) return command;
    for (Command& inner : command->verbs) {
      if (inner.name == known.first) return std::move(inner);
    }
    return absl::InternalError(absl::StrCat(known.program, " has no verb ", known.first));
  }
  return absl::NotFoundError(absl::StrCat("skein itself knows ", verb));
}

}  // namespace skein
