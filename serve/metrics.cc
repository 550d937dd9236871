// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

namespace skein {
namespace {

prometheus::Family<prometheus::Counter>& Counters(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}

prometheus::Gauge* OneGauge(prometheus::Registry* registry, const char* name, const char* help) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

prometheus::Histogram* OneHistogram(prometheus::Registry* registry, const char* name, const char* help,
                                    const prometheus::Histogram::BucketBoundaries& bounds) {
  return &prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add({}, bounds);
}

}  // namespace

ServeMetrics::ServeMetrics(prometheus::Registry* registry) {
  auto& requests = Counters(registry, "skein_serve_requests_total", "Requests for actions, by outcome.");
  answered_ = &requests.Add({{"outcome", "answered"}});
  refused_ = &requests.Add({{"outcome", "refused"}});
  actions_ =
      &Counters(registry, "skein_serve_actions_total", "Actions computed: one for each row of a request.").Add({});
  auto& reloads = Counters(registry, "skein_serve_reloads_total", "Newer checkpoints that were looked at, by outcome.");
  reloads_ = &reloads.Add({{"outcome", "loaded"}});
  failed_reloads_ = &reloads.Add({{"outcome", "refused"}});
  sessions_ = OneGauge(registry, "skein_serve_sessions", "Sessions whose state is kept.");
  env_steps_ = OneGauge(registry, "skein_serve_policy_env_steps", "Env steps that the served policy was trained for.");
  seconds_ = OneHistogram(registry, "skein_serve_request_seconds",
                          "Time from a request's arrival to its answer, without the network.",
                          {2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1});
  batch_rows_ = OneHistogram(registry, "skein_serve_batch_rows", "Rows of one forward pass.",
                             {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192});
}

void ServeMetrics::Answered(size_t rows, absl::Duration took) {
  answered_->Increment();
  actions_->Increment(static_cast<double>(rows));
  seconds_->Observe(absl::ToDoubleSeconds(took));
}

}  // namespace skein
