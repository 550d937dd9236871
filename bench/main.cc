// SPDX-License-Identifier: Apache-2.0
// skein-bench: what `skein bench` runs; apart from skein because it needs Torch and MuJoCo.
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#ifndef SKEIN_CORE_ONLY
#include "base/net/credential_flags.h"
#endif
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "base/telemetry/log.h"
#include "bench/verbs.h"
#include "env/registry.h"
#include "learner/network/torch_version.h"

int main(int argc, char** argv) {
  skein::ShutdownSignal shutdown;
  CLI::App app("Measures a part of Skein and that part's own limit, in turn, in one run.", "skein bench");
  app.require_subcommand(1);
  app.footer("Each has a --help. Example:\n  skein bench learner --env HalfCheetah-v5");
  skein::BenchAction action;
  skein::AddBenchActing(&app, &action);
  skein::AddBenchDevice(&app, &action);
  skein::AddBenchFit(&app, &action);
  skein::AddBenchLearner(&app, &action);
  skein::AddBenchTensor(&app, &action);
#ifndef SKEIN_CORE_ONLY
  skein::AddBenchArs(&app, &action);
  skein::AddBenchEnv(&app, &action);
  skein::AddBenchRollout(&app, &action);
  skein::AddBenchServe(&app, &action);
  skein::AddBenchStream(&app, &action);
  skein::AddBenchTrain(&app, &action);
  skein::AddBenchScaling(&app, &action);
  skein::AddBenchTune(&app, &action);
#endif
  if (const auto code = skein::ParseArguments(
          app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}, {"LibTorch", skein::TorchVersion()}}))
    return *code;
  skein::InitLog("skein-bench");
  if (std::getenv("SKEIN_LOG") == nullptr) spdlog::set_level(spdlog::level::warn);
  const std::string verb = app.get_subcommands()[0]->get_name(), command = "skein bench " + verb;
#ifndef SKEIN_CORE_ONLY
  if (verb != "env") skein::ForgetCredentialVariables();  // Others only use servers of their own on the loopback.
#endif
  return skein::FinishOutput(command.c_str(), skein::ReportAndExitCode(command.c_str(), action(shutdown)));
}
