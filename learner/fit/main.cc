// SPDX-License-Identifier: Apache-2.0
// skein-fit: `skein fit` and `skein detect`.
#include <string>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "base/telemetry/log.h"
#include "learner/fit/fit_verbs.h"
#include "learner/network/torch_version.h"

int main(int argc, char** argv) {
  skein::ShutdownSignal shutdown;
  // With a verb it is what `skein` runs, and speaks as such.
  const bool has_verb = argc > 1 && argv[1][0] != '-';
  CLI::App app(
      "Trains models of sequences from files, and judges sequences by them. `skein fit` and `skein detect` call it.",
      has_verb ? "skein" : "skein-fit");
  app.require_subcommand(1);
  skein::FitAction action;
  skein::AddFit(&app, &action);
  skein::AddDetect(&app, &action);
  if (const auto code = skein::ParseArguments(app, argc, argv, {{"LibTorch", skein::TorchVersion()}})) return *code;
  skein::InitLog("skein-fit");  // Standard output is the result's alone.
  const std::string name = "skein " + app.get_subcommands().front()->get_name();
  return skein::FinishOutput(name.c_str(), skein::ReportAndExitCode(name.c_str(), action(&shutdown)));
}
