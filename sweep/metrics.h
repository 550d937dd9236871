// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/process/resource_share.h"
#include "base/telemetry/process_usage.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace skein {

// The sweep's Prometheus metrics. Metric names appear in this module only. Thread-safe.
class SweepMetrics {
 public:
  // Registers with `registry`, which must outlive this object.
  explicit SweepMetrics(prometheus::Registry* registry);

  // `trials`: how many are in each state, by StateName().
  void SetTrials(const std::map<std::string, int>& trials);
  void SetSlots(uint32_t busy, uint32_t free);
  void SetWork(double core_seconds, double env_steps, uint32_t failures);
  // What each slot may use at most; once. Nothing is exported of what is not limited.
  void SetShare(const ResourceShare& share);
  // What all trainings have used so far, and use.
  void SetUsage(const ProcessUsage& usage);
  void SetBest(std::optional<double> value);

 private:
  prometheus::Registry* const registry_;
  prometheus::Family<prometheus::Gauge>* trials_;
  prometheus::Gauge* busy_;
  prometheus::Gauge* free_;
  prometheus::Gauge* core_seconds_;
  prometheus::Gauge* env_steps_;
  prometheus::Gauge* failures_;
  prometheus::Gauge* used_cpu_;
  prometheus::Gauge* used_memory_;
  prometheus::Gauge* best_;
};

}  // namespace skein
