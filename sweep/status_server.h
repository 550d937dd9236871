// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/net/http_server.h"
#include "prometheus/registry.h"
#include "sweep/metrics.h"
#include "sweep/scheduler.h"
#include "sweep/study.h"

namespace skein {

// Serves a sweep's page at / and its metrics at /metrics. Thread-safe.
class StatusServer {
 public:
  // Errors as HttpServer::Listen.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Listen(const std::string& address);

  int port() const { return server_->port(); }
  // `core_seconds`, `env_steps`: of the search so far.
  void Update(const Study& study, const Scheduler& scheduler, double core_seconds, double env_steps);
  // Also during the test.
  void SetSlots(uint32_t slots, uint32_t free) { metrics_.SetSlots(slots - free, free); }
  void SetShare(const ResourceShare& share) { metrics_.SetShare(share); }
  void SetUsage(const ProcessUsage& usage) { metrics_.SetUsage(usage); }
  void SetPage(std::string page) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  StatusServer();

  const std::shared_ptr<prometheus::Registry> registry_;
  SweepMetrics metrics_;
  absl::Mutex mu_;
  std::string page_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;  // Last: its threads use the others.
};

}  // namespace skein
