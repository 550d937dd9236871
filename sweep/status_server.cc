// SPDX-License-Identifier: Apache-2.0
#include "sweep/status_server.h"

#include <map>
#include <optional>
#include <utility>

#include "sweep/sweep_report.h"

namespace skein {

StatusServer::StatusServer() : registry_(std::make_shared<prometheus::Registry>()), metrics_(registry_.get()) {}

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Listen(const std::string& address) {
  auto listening = HttpServer::Listen(address);
  if (!listening.ok()) return listening.status();
  std::unique_ptr<StatusServer> server(new StatusServer);
  server->server_ = *std::move(listening);
  server->server_->ServeMetrics(server->registry_);
  server->server_->Handle("/", [raw = server.get()] {
    absl::MutexLock lock(&raw->mu_);
    return HttpServer::Response{200, "text/html; charset=utf-8", raw->page_};
  });
  return server;
}

void StatusServer::SetPage(std::string page) {
  absl::MutexLock lock(&mu_);
  page_ = std::move(page);
}

void StatusServer::Update(const Study& study, const Scheduler& scheduler, double core_seconds, double env_steps) {
  std::map<std::string, int> states = {{"running", 0}, {"paused", 0}, {"complete", 0}, {"stopped", 0}, {"failed", 0}};
  uint32_t failures = 0;
  for (const Trial& trial : study.trials()) {
    ++states[StateName(trial)];
    failures += trial.failures;
  }
  metrics_.SetTrials(states);
  metrics_.SetWork(core_seconds, env_steps, failures);
  const auto best = BestTrial(study, scheduler);
  metrics_.SetBest(best ? std::optional<double>(study.Signed(study.trial(*best).results.rbegin()->second))
                        : std::nullopt);
}

}  // namespace skein
