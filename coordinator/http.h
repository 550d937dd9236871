// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/net/http_server.h"
#include "prometheus/collectable.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Targets for Prometheus http_sd: [{"targets": ["host:port"], "labels": {"role", "member", "run"}}, ...]. The
// coordinator at `own_address` is first, then every live member that has a metrics address. "run" is the run's name, or
// its id if it has no name. `tls`: the targets are scraped over HTTPS.
std::string ScrapeTargets(const v1::StatusResponse& status, const std::string& own_address, bool tls = false);

// Protobuf JSON with the field names of the .proto file, zero fields included; 64-bit numbers are strings.
std::string StatusJson(const v1::StatusResponse& status);

// Where the pages get their data. The functions are called on server threads.
struct PageSources {
  std::function<v1::StatusResponse()> status;
  std::function<std::string(size_t count)> history;  // HistoryJson() of the last `count` points.
  std::string config;                                // The run's resolved configuration as YAML.
  std::function<absl::StatusOr<std::string>()> log;  // LogTail::Json().
};

// Number of points that /api/history/recent returns.
inline constexpr size_t kRecentPoints = 60;

// Serves / and the other files of the status page, /api/status, /api/history (the whole run), /api/history/recent,
// /api/config, /api/log, /sd/prometheus, /metrics, /healthz and /readyz. The run's token is replaced by "[token]"
// wherever it occurs in the configuration.
void ServePages(HttpServer* server, PageSources sources, const std::string& own_address,
                std::shared_ptr<prometheus::Collectable> metrics);

}  // namespace skein
