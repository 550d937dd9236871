// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator.h"

#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/config/config.h"
#include "base/net/credentials.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/telemetry/printable.h"
#include "coordinator/etcd_client.h"
#include "coordinator/http.h"
#include "spdlog/spdlog.h"

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

// Opens the store and completes `state` with what is kept there; nullptr: nothing is kept. Where that is not what was
// asked for, it is logged and counted.
absl::StatusOr<std::unique_ptr<StateStore>> OpenState(const CoordinatorOptions& options,
                                                      const Coordinator::Hooks& hooks, CoordinatorState::Options* state,
                                                      CoordinatorMetrics* metrics) {
  const absl::StatusOr<HostPort> listen = ParseHostPort(options.listen);
  if (!listen.ok()) return listen.status();
  StoreOptions kept;
  kept.url = options.store;
  kept.run_directory = options.run_directory;
  kept.address = JoinHostPort(ReachableHost(options.listen, options.announce_host), listen->port);
  kept.standby = options.standby;
  kept.lease = absl::Seconds(state->config.coordinator().lease_seconds());
  kept.cancel = hooks.cancel;
  kept.on_wait = hooks.on_wait;
  kept.on_lost = hooks.on_lost;
  // A standby must not find out only on takeover that it cannot listen.
  for (const std::string& address : {options.listen, options.http}) {
    if (absl::Status status = CheckExposure(address); !status.ok()) return status;
  }
  if (absl::Status status = CheckCanListen(*listen); !status.ok()) return status;
  auto store = OpenStore(kept);
  absl::Status status = store.status();
  if (store.ok() && *store != nullptr) status = TakeOver(store->get(), state->start_epoch, state);
  if (status.ok()) {
    if (*store != nullptr) metrics->SetStateKept(true);
    return store;
  }
  // Fatal only for a store that was asked for, and where another coordinator has it.
  if (!options.store.empty() || absl::IsUnavailable(status)) return status;
  metrics->StateWriteFailed();
  metrics->SetStateKept(false);
  spdlog::error("the coordinator's state is not kept: {}", std::string(status.message()));
  return nullptr;
}

}  // namespace

absl::Status CoordinatorOptions::Validate() const {
  for (const std::string& address : {listen, http}) {
    if (absl::Status status = ParseHostPort(address).status(); !status.ok()) return status;
  }
  if (!page_url.empty() && !absl::StartsWith(page_url, "http://") && !absl::StartsWith(page_url, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--page-url: want http://HOST:PORT/ or https://HOST:PORT/, got '", Printable(page_url), "'"));
  }
  if (IsEtcdAddress(store) && ParseHostPort(listen)->port == 0) {
    return absl::InvalidArgumentError("--listen: with etcd a coordinator needs a port that its members know: not 0");
  }
  StoreOptions kept;
  kept.url = store;
  kept.standby = standby;
  return ValidateStore(kept);
}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const CoordinatorOptions& options, Hooks hooks) {
  absl::StatusOr<v1::RunConfig> config = LoadRunConfig(options.config_path, options.overrides, 1);
  if (!config.ok()) return config.status();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();

  std::unique_ptr<Coordinator> coordinator(new Coordinator);
  coordinator->log_tail_ = std::make_unique<LogTail>(options.log_path, ProcessCredentials().token);
  coordinator->registry_ = std::make_shared<prometheus::Registry>();
  coordinator->metrics_ = std::make_unique<CoordinatorMetrics>(coordinator->registry_.get());
  coordinator->sampler_ = std::make_unique<ResourceSampler>(
      coordinator->registry_.get(), absl::Seconds(config->logging().utilization_interval_seconds()));
  CoordinatorState::Options state;
  state.run_id = options.run_id;
  state.run_directory = options.run_directory;
  state.config = *std::move(config);
  state.start_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  state.new_session = options.new_session;
  auto store = OpenState(options, hooks, &state, coordinator->metrics_.get());
  if (!store.ok()) return store.status();
  coordinator->store_ = *std::move(store);
  if (state.run_id.empty()) state.run_id = RandomRunId();
  coordinator->sampler_->ExportNode(state.run_id);
  coordinator->scaler_ = std::make_unique<ExternalScaler>(state.config);
  const std::string settings = ToYaml(state.config);
  coordinator->service_ = std::make_unique<CoordinatorService>(
      std::move(state), AddressRules{options.announce_host, options.foreign_metrics}, coordinator->metrics_.get(),
      [scaler = coordinator->scaler_.get(), metrics = coordinator->metrics_.get()](const v1::StatusResponse& status) {
        metrics->SetWantedActors(scaler->Observe(status));
      },
      coordinator->store_.get());

  int grpc_port = 0;
  absl::StatusOr<std::unique_ptr<grpc::Server>> grpc = StartGrpcServer(
      options.listen, {coordinator->service_.get(), coordinator->scaler_.get()}, &grpc_port, kControlPlaneLimits);
  if (!grpc.ok()) return grpc.status();
  coordinator->grpc_ = *std::move(grpc);
  coordinator->grpc_address_ = JoinHostPort(ReachableHost(options.listen, options.announce_host), grpc_port);

  absl::StatusOr<std::unique_ptr<HttpServer>> http = HttpServer::Listen(options.http);
  if (!http.ok()) return http.status();
  coordinator->http_ = *std::move(http);
  coordinator->http_address_ =
      JoinHostPort(ReachableHost(options.http, options.announce_host), coordinator->http_->port());
  coordinator->metrics_->SetStatusPage(
      options.page_url.empty() ? absl::StrCat(HttpScheme(), "://", coordinator->http_address_, "/") : options.page_url);
  CoordinatorService* service = coordinator->service_.get();
  ServePages(coordinator->http_.get(),
             {.status = [service] { return service->Status(); },
              .history = [service](size_t count) { return service->HistoryText(count); },
              .config = settings,
              .log = [tail = coordinator->log_tail_.get()] { return tail->Json(); }},
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
  store_.reset();
}

}  // namespace skein
