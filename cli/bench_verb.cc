// SPDX-License-Identifier: Apache-2.0
// skein bench: hands its whole command line to skein-bench, which knows the verbs and their flags.
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"
#include "cli/replace_process.h"
#include "cli/verbs.h"

namespace skein {

void AddBench(CLI::App* app, Action* action) {
  CLI::App* verb =
      app->add_subcommand("bench", "Measure env, rollout, stream, learner, train or tensor against its limit");
  verb->set_help_flag();
  verb->prefix_command();
  verb->callback([verb, action] {
    *action = [arguments = verb->remaining()] {
      return ReportAndExitCode("skein bench", ReplaceProcess(ProgramFolder(), "skein-bench", arguments));
    };
  });
}

}  // namespace skein
