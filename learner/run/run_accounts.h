// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "learner/collect/collector.h"
#include "learner/report/metrics.h"
#include "skein/v1/status.pb.h"

namespace skein {

// The run's step account as known to this rank: its own account, the other ranks' last reports, and the account of
// ranks that are gone. Thread-safe.
class RunAccounts {
 public:
  explicit RunAccounts(LearnerMetrics* metrics) : metrics_(metrics) {}

  // Uses the collector's account as this rank's from now on. `collector` must outlive this.
  void Follow(const Collector* collector) { collector_ = collector; }
  const Collector* collector() const { return collector_; }  // Null: mode on_device, or not yet.
  // Without a collector: Begin sets this rank's account, Count adds steps, SettleOwn counts pending steps as lost.
  void Begin(const v1::StepAccount& account);
  void Count(uint64_t collected, uint64_t trained);
  void SettleOwn();

  void SetOthers(const v1::StepAccount& others);
  void SetLost(const v1::StepAccount& lost);  // Of ranks that are gone, the same on all.

  v1::StepAccount own() const;
  v1::StepAccount lost() const;
  v1::StepAccount total() const;

 private:
  LearnerMetrics* const metrics_;
  std::atomic<const Collector*> collector_{nullptr};
  mutable absl::Mutex mu_;
  v1::StepAccount own_ ABSL_GUARDED_BY(mu_);
  v1::StepAccount others_ ABSL_GUARDED_BY(mu_);
  v1::StepAccount lost_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
