// SPDX-License-Identifier: Apache-2.0
// skein-coordinator: the control plane of one run.
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/shutdown.h"
#include "coordinator/coordinator.h"

namespace skein {
namespace {

constexpr char kProgram[] = "skein-coordinator";

void AddFlags(CLI::App* app, CoordinatorOptions* options, std::string* log_json) {
  app->add_option("--config", options->config_path, "Run configuration (YAML); what it leaves open gets its default")
      ->type_name("FILE");
  app->add_option("--set", options->overrides, "Any setting as a.b=value; may be repeated, comes last")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--listen", options->listen, "Address for gRPC; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--http", options->http, "Address for the status page and metrics")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--run-dir", options->run_directory, "Run directory, to be shown in the status")->type_name("DIR");
  app->add_option("--run-id", options->run_id, "Id of the run; random if empty")->type_name("ID");
  app->add_option("--announce-host", options->announce_host, "Host name or address others reach this node by")
      ->type_name("HOST");
  app->add_option("--log-json", *log_json, "File for the log, one JSON object a line")->type_name("FILE");
  app->add_flag("--exit-with-parent", options->exit_with_parent, "Stop when the parent process ends");
  app->footer("Example: skein-coordinator --config run.yaml --listen 0.0.0.0:7070 --announce-host node1");
}

absl::Status Run(const CoordinatorOptions& options, ShutdownSignal* signal) {
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Start(options);
  if (!coordinator.ok()) return coordinator.status();
  std::printf("coordinator listening grpc=%s http=http://%s/\n", (*coordinator)->grpc_address().c_str(),
              (*coordinator)->http_address().c_str());
  std::fflush(stdout);
  absl::Notification stop;
  signal->OnSignal([&stop] { stop.Notify(); });
  stop.WaitForNotification();
  signal->OnSignal({});
  (*coordinator)->Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::ShutdownSignal signal;
  skein::CoordinatorOptions options;
  std::string log_json;
  CLI::App app("The control plane of one run: membership, barriers, status page, metrics.", skein::kProgram);
  skein::AddFlags(&app, &options, &log_json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return skein::ReportAndExitCode(skein::kProgram, absl::InvalidArgumentError(error.what()));
  }
  skein::InitLog(skein::kProgram, log_json);
  if (options.exit_with_parent) skein::ExitWithParent();
  absl::Status status = options.Validate();
  if (status.ok()) status = skein::Run(options, &signal);
  return skein::ReportAndExitCode(skein::kProgram, status);
}
