// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/net/http_server.h"
#include "prometheus/collectable.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Prometheus http_sd: [{"targets": ["host:port"], "labels": {"role", "member", "run"}}, ...], the coordinator at
// `own_address` first, then every live member that has a metrics address. "run" is the run's name, or its id if it has
// none. `tls`: they are asked by HTTPS.
std::string ScrapeTargets(const v1::StatusResponse& status, const std::string& own_address, bool tls = false);

// protobuf's JSON with the names of the .proto file and with fields that are zero; 64-bit numbers are strings.
std::string StatusJson(const v1::StatusResponse& status);

// What pages are made of; called on server threads.
struct PageSources {
  std::function<v1::StatusResponse()> status;
  std::function<std::string(size_t count)> history;  // HistoryJson() of the last `count` points.
};

// Points of /api/history/recent.
inline constexpr size_t kRecentPoints = 60;

// Serves / and the other files of the status page, /api/status, /api/history (the whole run), /api/history/recent,
// /sd/prometheus, /metrics, /healthz and /readyz.
void ServePages(HttpServer* server, PageSources sources, const std::string& own_address,
                std::shared_ptr<prometheus::Collectable> metrics);

}  // namespace skein
