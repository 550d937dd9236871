// SPDX-License-Identifier: Apache-2.0
// skein eval: hands its whole command line to skein-eval, which knows the flags.
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"
#include "cli/replace_process.h"
#include "cli/verbs.h"

namespace skein {

void AddEval(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("eval", "Evaluate a checkpoint with deterministic actions");
  verb->set_help_flag();
  verb->prefix_command();
  verb->callback([verb, action] {
    *action = [arguments = verb->remaining()] {
      return ReportAndExitCode("skein eval", ReplaceProcess(ProgramFolder(), "skein-eval", arguments));
    };
  });
}

}  // namespace skein
