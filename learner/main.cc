// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "CLI/CLI.hpp"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/shutdown.h"
#include "learner/learner.h"

namespace {

constexpr char kProgram[] = "skein-learner";

}  // namespace

int main(int argc, char** argv) {
  skein::ShutdownSignal shutdown;
  skein::LearnerOptions options;
  std::string timeout = "30s", resume = "auto", log_json;
  bool exit_with_parent = false;
  CLI::App app("Trains the policy of a run. Usually started by `skein train` or `skein head`.", kProgram);
  app.add_option("--coordinator", options.coordinator, "Address of the coordinator, host:port")->required();
  app.add_option("--run-dir", options.run_directory, "Folder of the run: checkpoints and metrics.jsonl")->required();
  app.add_option("--listen", options.listen, "Address for trajectories and policies; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--metrics", options.metrics, "Address for /metrics")->capture_default_str();
  app.add_option("--announce-host", options.announce_host, "Host under which actors reach this machine");
  app.add_option("--resume", resume, "Go on from the newest checkpoint: auto, must or never")
      ->check(CLI::IsMember({"auto", "must", "never"}));
  app.add_option("--timeout", timeout, "How long to wait for the coordinator, e.g. 30s")->capture_default_str();
  app.add_option("--log-json", log_json, "File for the log, one JSON object a line");
  app.add_flag("--exit-with-parent", exit_with_parent, "End when the parent process does");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? skein::kExitOk : skein::kExitUsage;
  }
  if (exit_with_parent) skein::ExitWithParent();
  skein::InitLog(kProgram, log_json);
  if (!absl::ParseDuration(timeout, &options.timeout) || options.timeout <= absl::ZeroDuration()) {
    return skein::ReportAndExitCode(
        kProgram, absl::InvalidArgumentError("--timeout: want a duration such as 30s, got " + timeout));
  }
  options.resume = *skein::ParseResumeMode(resume);
  absl::Status status = options.Validate();
  if (status.ok()) status = skein::RunLearner(options, &shutdown);
  return skein::ReportAndExitCode(kProgram, status);
}
