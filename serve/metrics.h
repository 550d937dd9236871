// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace skein {

// The Prometheus metrics of `skein serve`. Metric names appear in this module only. Thread-safe.
class ServeMetrics {
 public:
  // Registers with `registry`, which must outlive this object.
  explicit ServeMetrics(prometheus::Registry* registry);

  void Answered(size_t rows, absl::Duration took);
  void Refused() { refused_->Increment(); }
  void Computed(size_t rows) { batch_rows_->Observe(static_cast<double>(rows)); }
  void Loaded(uint64_t env_steps) { env_steps_->Set(static_cast<double>(env_steps)); }
  void Reloaded(bool ok) { (ok ? reloads_ : failed_reloads_)->Increment(); }
  void SetSessions(size_t sessions) { sessions_->Set(static_cast<double>(sessions)); }

 private:
  prometheus::Counter *answered_, *refused_, *actions_, *reloads_, *failed_reloads_;
  prometheus::Gauge *sessions_, *env_steps_;
  prometheus::Histogram *seconds_, *batch_rows_;
};

}  // namespace skein
