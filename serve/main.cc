// SPDX-License-Identifier: Apache-2.0
// skein-policy: what `skein export`, `skein serve`, `skein env check` and `skein env serve` run; apart from skein
// because they need environments.
#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "env/registry.h"
#include "eval/env_check_verb.h"
#include "export/export_verb.h"
#include "serve/env_serve_verb.h"
#include "serve/serve_verb.h"

int main(int argc, char** argv) {
  skein::ShutdownSignal signal;
  // With a verb it is what `skein` runs, and speaks as such.
  const bool has_verb = argc > 1 && argv[1][0] != '-';
  CLI::App app("Takes a trained policy to other programs, checks and serves environments.",
               has_verb ? "skein" : "skein-policy");
  app.require_subcommand(1);
  std::function<int()> action;
  skein::AddExport(&app, &action);
  skein::AddServe(&app, &signal, &action);
  skein::AddEnvCheck(&app, &signal, &action);
  skein::AddEnvServe(app.get_subcommand("env"), &signal, &action);
  if (const auto code = skein::ParseArguments(app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}})) return *code;
  return skein::FinishOutput("skein-policy", action());
}
