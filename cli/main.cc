// SPDX-License-Identifier: Apache-2.0
// skein: the command people type.
#include "CLI/CLI.hpp"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "env/registry.h"

int main(int argc, char** argv) {
  CLI::App app("Skein: distributed reinforcement learning.", "skein");
  app.require_subcommand(1);
  app.set_version_flag("--version", "skein 0.1.0, MuJoCo " + skein::MujocoVersion());
  app.footer("Each verb has a --help. Example:\n  skein train --env HalfCheetah-v5");
  skein::Action action;
  skein::AddTrain(&app, &action);
  skein::AddHead(&app, &action);
  skein::AddWorker(&app, &action);
  skein::AddStatus(&app, &action);
  skein::AddTop(&app, &action);
  skein::AddDrain(&app, &action);
  skein::AddEval(&app, &action);
  skein::AddBench(&app, &action);
  skein::AddTune(&app, &action);
  skein::AddEnvs(&app, &action);
  if (const auto code = skein::ParseArguments(app, argc, argv)) return *code;
  return action();
}
