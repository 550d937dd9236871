// SPDX-License-Identifier: Apache-2.0
// skein: the command-line tool.
#include <map>
#include <set>
#include <string>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "base/net/credential_flags.h"
#include "base/process/exit_code.h"
#include "base/telemetry/log.h"
#include "cli/verbs.h"
#include "env/registry.h"
#include "learner/network/torch_version.h"

int main(int argc, char** argv) {
  CLI::App app("Skein: distributed reinforcement learning.", "skein");
  app.require_subcommand(1);
  app.footer("Each verb has a --help, which `skein help VERB` shows too. Example:\n  skein train --env HalfCheetah-v5");
  skein::Action action;
  skein::AddTrain(&app, &action);
  skein::AddHead(&app, &action);
  skein::AddSweep(&app, &action);
  skein::AddWorker(&app, &action);
  skein::AddStatus(&app, &action);
  skein::AddTop(&app, &action);
  skein::AddDrain(&app, &action);
  skein::AddRuns(&app, &action);
  skein::AddProgramVerbs(&app, &action);
  skein::AddEnvs(&app, &action);
  skein::AddResources(&app, &action);
  skein::AddCerts(&app, &action);
  skein::AddCompletion(&app, &action);
  skein::AddCheckHistory(&app, &action);
  std::map<std::string, skein::CredentialFiles> credentials;  // By verb: of those that connect or listen.
  for (const char* verb : {"train", "head", "sweep", "worker", "status", "top", "drain"}) {
    skein::AddCredentialFlags(app.get_subcommand(verb), &credentials[verb]);
  }
  if (const auto code = skein::ParseArguments(
          app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}, {"LibTorch", skein::TorchVersion()}})) {
    return *code;
  }
  skein::InitLog("skein");  // For warnings of libraries; what verbs say goes to standard output.
  const std::string verb = app.get_subcommands().front()->get_name();
  // Other verbs only use servers of their own on the loopback. These read the variables in programs of their own.
  const std::set<std::string> elsewhere = {"serve", "eval", "env", "bench", "fit"};
  if (credentials.count(verb) + elsewhere.count(verb) == 0) skein::ForgetCredentialVariables();
  if (const absl::Status status = skein::UseCredentials(credentials[verb]); !status.ok()) {
    return skein::ReportAndExitCode(("skein " + verb).c_str(), status);
  }
  return skein::FinishOutput(("skein " + verb).c_str(), action());
}
