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
#include "coordinator/log_tail.h"
#include "coordinator/metrics.h"
#include "coordinator/saved_run.h"
#include "coordinator/service.h"
#include "grpcpp/server.h"
#include "prometheus/registry.h"
#include "skein/v1/config.pb.h"

// One coordinator process: its options, and the object that holds its servers, threads and state.
//   gRPC calls, HTTP requests, timer -> CoordinatorState -> answers, metrics, stored records
namespace skein {

struct CoordinatorOptions {
  std::string config_path;             // YAML; open settings are resolved as for one runner. Empty = all defaults.
  std::vector<std::string> overrides;  // KEY=VALUE, over the file.
  std::string listen = "127.0.0.1:7070";
  std::string http = "127.0.0.1:0";
  std::string run_directory;  // Shown to users; also holds the state unless `store` is set.
  std::string run_id;         // Empty = the id in the stored state, else a random one.
  std::string log_path;       // JSON log that the run's processes on this host share; empty = this process's own lines.
  std::string announce_host;  // Host under which others reach this node; empty = `listen`'s host.
  bool foreign_metrics = false;  // Believe metrics addresses at another host than their member calls from.
  std::string page_url;          // Where browsers find the status page; empty = the announced HTTP address.
  bool exit_with_parent = false;
  std::string store;         // Where to keep state: "" = in run_directory, "none", a folder, "etcd://...".
  bool standby = false;      // With etcd: wait until there is no primary.
  bool new_session = false;  // Members of an earlier coordinator no longer exist.

  // InvalidArgument: an address is not host:port, `page_url` is not a URL, `store` or `standby` has an unusable value,
  // or etcd is used without a fixed port.
  absl::Status Validate() const;
};

// The coordinator process of one run. Threads: gRPC, HTTP server, barrier timer, resource sampler.
class Coordinator {
 public:
  struct Hooks {
    Cancellation* cancel = nullptr;                       // Ends a standby's wait; not owned, unused after Start().
    std::function<void(const std::string& why)> on_wait;  // At most once: it must wait to become primary.
    std::function<void(const absl::Status&)> on_lost;     // Once, on any thread: it lost the primary role.
  };
  // NotFound, InvalidArgument: the configuration. Unavailable: an address cannot be listened on, or another coordinator
  // holds the state. Cancelled: the wait was cancelled. Others as the store.
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
  // In order of construction; each member may use those above it.
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<CoordinatorMetrics> metrics_;
  std::unique_ptr<LogTail> log_tail_;
  std::unique_ptr<ResourceSampler> sampler_;
  std::unique_ptr<ExternalScaler> scaler_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace skein
