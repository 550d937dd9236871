// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/http_server.h"
#include "base/resource_sampler.h"
#include "coordinator/external_scaler.h"
#include "coordinator/metrics.h"
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
  std::string run_directory;  // Only shown.
  std::string run_id;         // Empty = random.
  std::string announce_host;  // How others reach this node; empty = the host it listens on.
  bool exit_with_parent = false;

  // InvalidArgument: an address is not host:port.
  absl::Status Validate() const;
};

// The coordinator of one run, listening. Threads: gRPC's, the HTTP server's, the barrier timer, the resource sampler.
class Coordinator {
 public:
  // NotFound, InvalidArgument: the configuration. Unavailable: an address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const CoordinatorOptions& options);
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
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace skein
