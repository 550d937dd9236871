// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/fit/fit_run.h"
#include "learner/fit/fit_trainer.h"
#include "learner/ranks/rank_environment.h"

namespace skein {

// Tells the world of a training: /metrics, and the coordinator where there is one, as a learner does. Counts rates and
// the time that is left. One thread calls; others read.
class FitReport {
 public:
  // Errors as HttpServer::Listen and CoordinatorClient::Join.
  static absl::StatusOr<std::unique_ptr<FitReport>> Start(const FitOptions& options, const RankEnvironment& place,
                                                          const DataCounts& counts);
  ~FitReport();

  std::string metrics_address() const;
  // Of the coordinator that it started, and of its status page; empty: none.
  const std::string& coordinator_address() const;
  const std::string& page() const;
  // Training begins, or goes on, here. `done`: share of train.epochs.
  void Begin(const FitProgress& progress, double done);
  void SetProgress(const FitProgress& progress, const FitStep& step, double done, uint64_t out_of_memory);
  // Without `held_out_loss` no sequences are held out.
  void SetEpoch(const FitProgress& progress, double loss, std::optional<double> held_out_loss);
  // Of the stream under way; EndOfStream() keeps them when it ends.
  void SetDataTimes(absl::Duration waited, absl::Duration working);
  void EndOfStream();
  void CountCheckpoint(bool written);
  // The last report: finished, stopped or failed.
  void End(const absl::Status& status, bool stopped, const std::string& checkpoint);

  double keys_per_second() const;                                   // Over the last 10 s.
  double eta_seconds(double done) const;                            // Negative: unknown.
  double data_wait_seconds() const;                                 // In which training waited for batches.
  void AddResources(std::map<std::string, double>* numbers) const;  // Use of processors, memory, GPUs.

 private:
  struct Impl;
  explicit FitReport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
