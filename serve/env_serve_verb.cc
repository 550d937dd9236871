// SPDX-License-Identifier: Apache-2.0
// skein env serve: environments of other processes for actors on other machines, over gRPC.
#include "serve/env_serve_verb.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/command/arguments.h"
#include "base/config/config.h"
#include "base/net/credential_flags.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/process/exit_code.h"
#include "base/telemetry/log.h"
#include "env/env_config.h"
#include "env/external/external_envs.h"
#include "nlohmann/json.hpp"
#include "serve/world_service.h"

namespace skein {
namespace {

struct EnvServeFlags {
  std::string id, listen, name, config;
  std::vector<std::string> overrides;
  int most_streams = 256;
  bool exit_with_parent = false;
  CredentialFiles credentials;
};

absl::StatusOr<ExternalOptions> ReadOptions(const EnvServeFlags& flags) {
  std::vector<std::string> overrides = {absl::StrCat("env.id=", nlohmann::json(flags.id).dump(-1, ' ', true))};
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  const auto config = ReadRunConfig(flags.config, overrides);
  if (!config.ok()) return config.status();
  return MakeEnvOptions(*config).external;
}

absl::Status Serve(const EnvServeFlags& flags, ShutdownSignal* signal) {
  if (absl::Status status = UseCredentials(flags.credentials); !status.ok()) return status;
  auto options = ReadOptions(flags);
  if (!options.ok()) return options.status();
  options->given_up = [signal] { return signal->signalled(); };
  std::string server;
  {  // What cannot be made is no reason to serve.
    const auto first = OpenLocalWorld(flags.id, 1, *options);
    if (absl::IsCancelled(first.status())) return absl::CancelledError("stopped on request");
    if (!first.ok()) return first.status();
    server = (*first)->server();
  }
  WorldService service({.name = flags.name,
                        .most_streams = flags.most_streams,
                        .step_timeout = options->step_timeout,
                        .open = [&](const env::v1::Hello& hello, WorldService::GivenUp given_up) {
                          ExternalOptions asked = *options;
                          if (!hello.arguments().empty()) asked.arguments = hello.arguments();
                          asked.given_up = std::move(given_up);
                          return OpenLocalWorld(flags.id, hello.num_envs(), asked);
                        }});
  int port = 0;
  auto grpc = StartGrpcServer(flags.listen, &service, &port);
  if (!grpc.ok()) return grpc.status();
  SetReady(grpc->get(), true);
  std::printf("serving %s, %s at grpc://%s%s\n", flags.id.c_str(), server.c_str(),
              JoinHostPort(ParseHostPort(flags.listen)->host, port).c_str(),
              flags.name.empty() ? "" : absl::StrCat("/", flags.name).c_str());
  std::fflush(stdout);
  absl::Notification stop;
  signal->OnSignal([&stop] { stop.Notify(); });
  stop.WaitForNotification();
  signal->OnSignal({});
  (*grpc)->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));  // Then streams are cancelled.
  return absl::OkStatus();
}

}  // namespace

void AddEnvServe(CLI::App* env, ShutdownSignal* signal, std::function<int()>* action) {
  CLI::App* const verb = env->add_subcommand("serve", "Serve an environment to actors on other machines, over gRPC");
  const auto flags = std::make_shared<EnvServeFlags>();
  verb->add_option("id", flags->id,
                   "Environment: python: or exec:, a process for each env group; or plugin:, in this process")
      ->required();
  verb->add_option("--listen", flags->listen, "Address for gRPC; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->required();
  verb->add_option("--name", flags->name, "Name that actors ask for, grpc://HOST:PORT/NAME; by default any");
  verb->add_option("--max-streams", flags->most_streams, "Env groups at a time; one more is refused")
      ->check(CLI::Range(1, 32000))
      ->capture_default_str();
  verb->add_option("--config", flags->config, "Configuration, YAML, for its settings of the environment");
  verb->add_option("--set", flags->overrides, "Setting, e.g. env.external.python=FILE; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  AddCredentialFlags(verb, &flags->credentials);
  verb->add_flag("--exit-with-parent", flags->exit_with_parent, "Stop when the parent process ends");
  verb->footer(
      "Example:\n  skein env serve python:my_env:make --listen 0.0.0.0:7200 --token-file credentials/token\n"
      "  skein train --env grpc://that-host:7200 --token-file credentials/token");
  verb->callback([flags, signal, action] {
    *action = [flags, signal] {
      InitLog("skein-env");
      if (flags->exit_with_parent) ExitWithParent();
      return ReportAndExitCode("skein env serve", Serve(*flags, signal));
    };
  });
}

}  // namespace skein
