// SPDX-License-Identifier: Apache-2.0
// skein eval, bench and tune: verbs that other programs know, with their flags; the whole command line goes there.
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"
#include "cli/replace_process.h"
#include "cli/verbs.h"

namespace skein {
namespace {

// `first` is inserted before the user's arguments.
void AddProgram(CLI::App* app, Action* action, const std::string& name, const std::string& help,
                const std::string& program, const std::vector<std::string>& first) {
  CLI::App* verb = app->add_subcommand(name, help);
  verb->set_help_flag();
  verb->prefix_command();
  verb->callback([=] {
    std::vector<std::string> arguments = first;
    const std::vector<std::string> typed = verb->remaining();
    arguments.insert(arguments.end(), typed.begin(), typed.end());
    *action = [=] {
      return ReportAndExitCode(("skein " + name).c_str(), ReplaceProcess(ProgramFolder(), program, arguments));
    };
  });
}

}  // namespace

void AddEval(CLI::App* app, Action* action) {
  AddProgram(app, action, "eval", "Evaluate a checkpoint with deterministic actions", "skein-eval", {});
}

void AddBench(CLI::App* app, Action* action) {
  AddProgram(app, action, "bench",
             "Measure acting, env, rollout, stream, learner, train, tensor or scaling against its limit", "skein-bench",
             {});
}

void AddTune(CLI::App* app, Action* action) {
  AddProgram(app, action, "tune", "Measure how many runners and environments suit this node", "skein-bench", {"tune"});
}

}  // namespace skein
