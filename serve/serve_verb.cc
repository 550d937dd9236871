// SPDX-License-Identifier: Apache-2.0
// skein serve: actions of a checkpoint's policy over gRPC and HTTP.
#include "serve/serve_verb.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/synchronization/notification.h"
#include "base/command/arguments.h"
#include "base/net/credential_flags.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/net/http_server.h"
#include "base/process/exit_code.h"
#include "base/telemetry/log.h"
#include "prometheus/registry.h"
#include "serve/http_actions.h"
#include "serve/policy_service.h"
#include "serve/policy_source.h"

namespace skein {
namespace {

struct ServeFlags {
  std::string checkpoint, listen = "127.0.0.1:7080", http = "127.0.0.1:7081";
  double batch_wait_us = 0, session_seconds = 600, reload_seconds = 1;
  uint64_t batch_rows = 4096, most_sessions = 100000, seed = 1;
  bool exit_with_parent = false;
  CredentialFiles credentials;
};

// `address` with the port that was taken.
std::string WithPort(const std::string& address, int port) {
  const auto parsed = ParseHostPort(address);
  return JoinHostPort(parsed.ok() ? parsed->host : "", port);
}

absl::Status Serve(const ServeFlags& flags, ShutdownSignal* signal) {
  if (absl::Status status = UseCredentials(flags.credentials); !status.ok()) return status;
  auto policy = LoadServedPolicy(flags.checkpoint);
  if (!policy.ok()) return policy.status();
  const std::shared_ptr<const ServedPolicy> first = *policy;
  const auto registry = std::make_shared<prometheus::Registry>();
  ServeMetrics metrics(registry.get());
  metrics.Loaded(first->env_steps);
  ActionServer server({.most_sessions = flags.most_sessions,
                       .session_idle = absl::Seconds(flags.session_seconds),
                       .batch_wait = absl::Microseconds(flags.batch_wait_us),
                       .batch_rows = flags.batch_rows,
                       .seed = flags.seed},
                      first, &metrics);
  PolicyService service(&server);
  int port = 0;
  auto grpc = StartGrpcServer(flags.listen, {&service}, &port, ActionServerLimits(flags.listen));
  if (!grpc.ok()) return grpc.status();
  auto http = HttpServer::Listen(flags.http);
  if (!http.ok()) return http.status();
  ServeActions(http->get(), &server, registry);
  const PolicySource source(flags.checkpoint, absl::Seconds(flags.reload_seconds), &server, &metrics);
  SetReady(grpc->get(), true);
  std::printf("serving %s, checkpoint %s (digest %s, %llu env steps) grpc=%s http=%s://%s\n",
              first->actor.portable().env_id.c_str(), first->checkpoint.c_str(), first->digest.c_str(),
              static_cast<unsigned long long>(first->env_steps), WithPort(flags.listen, port).c_str(), HttpScheme(),
              WithPort(flags.http, (*http)->port()).c_str());
  std::fflush(stdout);
  absl::Notification stop;
  signal->OnSignal([&stop] { stop.Notify(); });
  stop.WaitForNotification();
  signal->OnSignal({});
  (*grpc)->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));  // Requests under way are answered.
  return absl::OkStatus();
}

}  // namespace

void AddServe(CLI::App* app, ShutdownSignal* signal, std::function<int()>* action) {
  CLI::App* const verb = app->add_subcommand("serve", "Serve actions of a checkpoint's policy over gRPC and HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  verb->add_option("--checkpoint", flags->checkpoint,
                   "Checkpoint folder, or a run's folder: its newest one, and each newer one as it comes")
      ->required();
  verb->add_option("--listen", flags->listen, "Address for gRPC; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  verb->add_option("--http", flags->http, "Address for JSON and metrics")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  verb->add_option("--batch-wait", flags->batch_wait_us,
                   "Microseconds that a request waits for others to share a forward pass with; 0 = it does not")
      ->check(NumberWithin(0, 1e6))
      ->capture_default_str();
  verb->add_option("--batch-rows", flags->batch_rows, "With that many rows a batch waits no longer")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--max-sessions", flags->most_sessions, "Sessions whose state is kept")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  verb->add_option("--session-seconds", flags->session_seconds,
                   "A session that was not used for so long makes room for a new one where there are too many")
      ->check(NumberWithin(0, 1e9))
      ->capture_default_str();
  verb->add_option("--reload-seconds", flags->reload_seconds,
                   "Seconds between two looks for a newer checkpoint; 0 = none")
      ->check(NumberWithin(0, 86400))
      ->capture_default_str();
  verb->add_option("--seed", flags->seed, "Of sampled actions")->transform(WholeNumber())->capture_default_str();
  AddCredentialFlags(verb, &flags->credentials);
  verb->add_flag("--exit-with-parent", flags->exit_with_parent, "Stop when the parent process ends");
  verb->footer(
      "Example:\n  skein serve --checkpoint runs/CartPole-v1-s1\n"
      "  curl -d '{\"session\": \"a\", \"observation\": [0, 0, 0, 0]}' http://127.0.0.1:7081/v1/act");
  verb->callback([flags, signal, action] {
    *action = [flags, signal] {
      InitLog("skein-serve");
      if (flags->exit_with_parent) ExitWithParent();
      return ReportAndExitCode("skein serve", Serve(*flags, signal));
    };
  });
}

}  // namespace skein
