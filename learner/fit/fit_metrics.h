// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "learner/fit/fit_progress.h"
#include "learner/sequence/sequence_store.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace skein {

// The metrics of a `skein fit`. Only this file pair names them. Thread-safe.
class FitMetrics {
 public:
  explicit FitMetrics(prometheus::Registry* registry);

  void SetStep(const FitProgress& progress, const FitStep& step, uint64_t out_of_memory);
  void SetEpoch(const FitProgress& progress, double loss, std::optional<double> held_out_loss);
  void SetData(const DataCounts& counts);
  void SetDone(double share, double keys_per_second, double eta_seconds);
  void SetDataTimes(double waited_seconds, double working_seconds);
  void CountCheckpoint(bool written);

 private:
  prometheus::Gauge *epoch_, *loss_, *epoch_loss_, *held_out_loss_, *gradient_norm_, *done_, *keys_per_second_, *eta_;
  prometheus::Gauge *sequences_, *keys_, *steps_, *skipped_, *out_of_memory_, *waited_, *working_;
  prometheus::Gauge *train_sequences_, *held_sequences_, *unknown_keys_;
  prometheus::Counter *checkpoints_, *failed_checkpoints_;
};

}  // namespace skein
