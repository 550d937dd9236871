// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/net/http_server.h"
#include "base/process/cancellation.h"
#include "base/telemetry/resource_sampler.h"
#include "coordinator/external_scaler.h"
#include "coordinator/metrics.h"
#include "coordinator/saved_run.h"
#include "coordinator/service.h"
#include "grpcpp/server.h"
#include "prometheus/registry.h"
#include "skein/v1/config.pb.h"

namespace skein {

struct CoordinatorOptions {
  std::string config_path;             // YAML; what it leaves open is resolved as for one runner. Empty = all defaults.
  std::vector<std::string> overrides;  // KEY=VALUE, over the file.
  std::string listen = "127.0.0.1:7070";
  std::string http = "127.0.0.1:0";
  std::string run_directory;  // Shown; and the state is kept there, unless `store` says otherwise.
  std::string run_id;         // Empty = that of the state that is kept, else random.
  std::string announce_host;  // How others reach this node; empty = the host it listens on.
  bool exit_with_parent = false;
  std::string store;         // Where the state is kept: "" = in run_directory, "none", a folder, "etcd://...".
  bool standby = false;      // With etcd: waits until the primary is gone.
  bool new_session = false;  // Members of a coordinator before this one are gone.

  // InvalidArgument: an address is not host:port, `store` or `standby` cannot be, etcd without a port of one's own.
  absl::Status Validate() const;
};

// The coordinator of one run, listening. Threads: gRPC's, the HTTP server's, the barrier timer, the resource sampler.
class Coordinator {
 public:
  struct Hooks {
    Cancellation* cancel = nullptr;  // Ends the wait of a standby; not owned, not used after Start().
    std::function<void(const std::string& why)> on_wait;  // Once, if it has to wait to be the primary.
    std::function<void(const absl::Status&)> on_lost;     // It is not the primary any more: on any thread, once.
  };
  // NotFound, InvalidArgument: the configuration. Unavailable: an address cannot be listened on, or the state is
  // another coordinator's. Cancelled. Others as the store.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options, Hooks hooks);
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options) {
    return Start(options, Hooks());
  }
  ~Coordinator() { Stop(); }

  // Ends waiting calls, then open connections; joins all threads. Idempotent.
  void Stop();

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

 private:
  Coordinator() = default;

  std::string grpc_address_;
  std::string http_address_;
  // In the order of their construction; each may use those above it.
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<CoordinatorMetrics> metrics_;
  std::unique_ptr<ResourceSampler> sampler_;
  std::unique_ptr<ExternalScaler> scaler_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace skein
