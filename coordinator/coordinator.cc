// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/config.h"
#include "base/grpc_transport.h"
#include "coordinator/http.h"

namespace skein {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace{200};

std::string RandomRunId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

// The host that others can call, of a server that listens on `listen`.
std::string ReachableHost(const std::string& listen, const std::string& announce_host) {
  if (!announce_host.empty()) return announce_host;
  const std::string host = ParseHostPort(listen)->host;
  return IsWildcard(host) ? "127.0.0.1" : host;
}

}  // namespace

absl::Status CoordinatorOptions::Validate() const {
  for (const std::string& address : {listen, http}) {
    if (absl::Status status = ParseHostPort(address).status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const CoordinatorOptions& options) {
  absl::StatusOr<v1::RunConfig> config = LoadRunConfig(options.config_path, options.overrides, 1);
  if (!config.ok()) return config.status();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();

  std::unique_ptr<Coordinator> coordinator(new Coordinator);
  coordinator->registry_ = std::make_shared<prometheus::Registry>();
  coordinator->metrics_ = std::make_unique<CoordinatorMetrics>(coordinator->registry_.get());
  coordinator->sampler_ = std::make_unique<ResourceSampler>(
      coordinator->registry_.get(), absl::Seconds(config->logging().utilization_interval_seconds()));
  CoordinatorState::Options state;
  state.run_id = options.run_id.empty() ? RandomRunId() : options.run_id;
  state.run_directory = options.run_directory;
  state.config = *std::move(config);
  state.start_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  coordinator->scaler_ = std::make_unique<ExternalScaler>(state.config);
  coordinator->service_ = std::make_unique<CoordinatorService>(
      std::move(state), options.announce_host, coordinator->metrics_.get(),
      [scaler = coordinator->scaler_.get(), metrics = coordinator->metrics_.get()](const v1::StatusResponse& status) {
        metrics->SetWantedActors(scaler->Observe(status));
      });

  int grpc_port = 0;
  absl::StatusOr<std::unique_ptr<grpc::Server>> grpc =
      StartGrpcServer(options.listen, {coordinator->service_.get(), coordinator->scaler_.get()}, &grpc_port);
  if (!grpc.ok()) return grpc.status();
  coordinator->grpc_ = *std::move(grpc);
  coordinator->grpc_address_ = JoinHostPort(ReachableHost(options.listen, options.announce_host), grpc_port);

  absl::StatusOr<std::unique_ptr<HttpServer>> http = HttpServer::Listen(options.http);
  if (!http.ok()) return http.status();
  coordinator->http_ = *std::move(http);
  coordinator->http_address_ =
      JoinHostPort(ReachableHost(options.http, options.announce_host), coordinator->http_->port());
  CoordinatorService* service = coordinator->service_.get();
  ServePages(coordinator->http_.get(),
             {.status = [service] { return service->Status(); },
              .history = [service](size_t count) { return service->HistoryText(count); }},
             coordinator->http_address_, coordinator->registry_);
  SetReady(coordinator->grpc_.get(), true);
  return coordinator;
}

void Coordinator::Stop() {
  if (grpc_ != nullptr) SetReady(grpc_.get(), false);
  if (service_ != nullptr) service_->Shutdown();
  if (scaler_ != nullptr) scaler_->Shutdown();
  if (grpc_ != nullptr) grpc_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  http_.reset();
  grpc_.reset();
}

}  // namespace skein
