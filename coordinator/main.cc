// SPDX-License-Identifier: Apache-2.0
// skein-coordinator: the control plane of one run.
#include <malloc.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/command/arguments.h"
#include "base/net/credential_flags.h"
#include "base/process/cancellation.h"
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "base/telemetry/log.h"
#include "coordinator/coordinator.h"

namespace skein {
namespace {

constexpr char kProgram[] = "skein-coordinator";
// Each keeps what has been freed in it; with malloc's own number, eight for each core, floods of calls take twice the
// memory (docs/decisions/resets-are-counted-below-grpc.md).
constexpr int kMallocArenas = 2;

void AddFlags(CLI::App* app, CoordinatorOptions* options, CredentialFiles* credentials) {
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
  app->add_option("--run-dir", options->run_directory, "Run directory, shown in the status; the state is kept there")
      ->type_name("DIR");
  app->add_option("--run-id", options->run_id, "Id of the run; default: that of the state that is kept, else random")
      ->type_name("ID");
  app->add_option("--announce-host", options->announce_host, "Host name or address others reach this node by")
      ->type_name("HOST");
  app->add_flag("--foreign-metrics", options->foreign_metrics,
                "Let members announce metrics at another host than the one they call from, e.g. behind NAT")
      ->envname("SKEIN_FOREIGN_METRICS");
  app->add_option("--page-url", options->page_url,
                  "Where browsers find the status page, for links to it; default: the address that others reach")
      ->type_name("URL");
  app->add_option("--log-json", options->log_path,
                  "File for the log, one JSON object a line; the status page shows its last lines")
      ->type_name("FILE");
  app->add_option("--store", options->store,
                  "Where the state is kept for a successor: a folder (default: in the run directory), none, or "
                  "etcd://host:port[,host:port]/prefix")
      ->type_name("STORE");
  app->add_flag("--standby", options->standby, "With etcd: wait for as long as another coordinator is the primary");
  app->add_flag("--new-session", options->new_session,
                "Members of a coordinator before this one have ended: forget them");
  AddCredentialFlags(app, credentials);
  app->add_flag("--exit-with-parent", options->exit_with_parent, "Stop when the parent process ends");
  app->footer(
      "Example: skein-coordinator --config run.yaml --listen 0.0.0.0:7070 --announce-host node1 --token-file token\n"
      "With a standby, on two nodes: ... --store etcd://node3:2379/skein/run --standby");
}

// The first of two reasons to stop: a signal (OK), or that this coordinator is not the primary any more.
class StopReason {
 public:
  explicit StopReason(absl::Notification* stop) : stop_(stop) {}
  void Note(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (stop_->HasBeenNotified()) return;
    why_ = why;
    stop_->Notify();
  }
  absl::Status why() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return why_;
  }

 private:
  absl::Notification* const stop_;
  mutable absl::Mutex mu_;
  absl::Status why_ ABSL_GUARDED_BY(mu_);
};

absl::Status Run(const CoordinatorOptions& options, ShutdownSignal* signal) {
  absl::Notification stop;
  StopReason reason(&stop);
  Cancellation cancel;
  signal->OnSignal([&cancel] { cancel.Cancel(); });
  Coordinator::Hooks hooks;
  hooks.cancel = &cancel;
  hooks.on_wait = [](const std::string& why) {
    std::printf("coordinator standby: %s\n", why.c_str());
    std::fflush(stdout);
  };
  hooks.on_lost = [&reason](const absl::Status& why) { reason.Note(why); };
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Start(options, hooks);
  signal->OnSignal({});
  if (absl::IsCancelled(coordinator.status())) return absl::OkStatus();  // A standby that was asked to stop.
  if (!coordinator.ok()) return coordinator.status();
  std::printf("coordinator listening grpc=%s http=%s://%s/\n", (*coordinator)->grpc_address().c_str(), HttpScheme(),
              (*coordinator)->http_address().c_str());
  std::fflush(stdout);
  signal->OnSignal([&reason] { reason.Note(absl::OkStatus()); });
  stop.WaitForNotification();
  signal->OnSignal({});
  (*coordinator)->Stop();
  return reason.why();
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, skein::kMallocArenas);  // Before there are threads.
  skein::ShutdownSignal signal;
  skein::CoordinatorOptions options;
  skein::CredentialFiles credentials;
  CLI::App app("The control plane of one run: membership, barriers, status page, metrics.", skein::kProgram);
  skein::AddFlags(&app, &options, &credentials);
  if (const auto code = skein::ParseArguments(app, argc, argv)) return *code;
  skein::InitLog(skein::kProgram, options.log_path);
  if (options.exit_with_parent) skein::ExitWithParent();
  absl::Status status = skein::UseCredentials(credentials);
  if (status.ok()) status = options.Validate();
  if (status.ok()) status = skein::Run(options, &signal);
  return skein::FinishOutput(skein::kProgram, skein::ReportAndExitCode(skein::kProgram, status));
}
