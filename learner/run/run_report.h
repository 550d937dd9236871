// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "learner/report/event_log.h"
#include "learner/report/progress.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_context.h"
#include "learner/run/trainer.h"
#include "skein/v1/status.pb.h"

namespace skein {

// What people are told of a run: heartbeats, /metrics, metrics.jsonl and TensorBoard's events.
// For the thread that trains, but for FillReport and SetBlocked.
class RunReport {
 public:
  // Both must outlive it.
  RunReport(const RunContext& context, const RunAccounts& accounts);

  // From here on there is something to tell. `episode_metrics`: names of what the environment measures.
  void Begin(const RunRecord& record, const Trainer::Saved& checkpoint,
             const std::vector<std::string>& episode_metrics);
  // Opens the run folder's files, unless they are open. PermissionDenied: metrics.jsonl cannot be written.
  absl::Status OpenLogs(const RunRecord& record);
  ProgressTracker& progress() { return *progress_; }  // REQUIRES: Begin.

  // Time that updates took the thread that trains.
  void AddUpdateCpu(absl::Duration cpu) { update_cpu_ += cpu; }
  // An iteration is counted: to metrics and, if `leads`, to the logs. `actors`: where all ranks' actors spent their
  // time. `batch`: what was trained on, null if it was on the device. `several_ranks`: samples are known of this one
  // alone.
  void LogIteration(const RunRecord& record, const ProgressTracker::Iteration& counted, const v1::StageSeconds& actors,
                    bool leads, bool several_ranks, const Trainer& trainer, Columns* batch);

  // Callable from any thread at any time. What is missing where too few ranks are there; empty: nothing.
  void SetBlocked(const std::string& missing);
  // Callable from any thread at any time. `progress` null: only the member's report is asked for.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const;

 private:
  v1::RunProgress Progress() const;
  // For TensorBoard.
  void LogEvents(const v1::RunProgress& progress, const Trainer& trainer, Columns* batch);

  const RunContext& context_;
  const RunAccounts& accounts_;
  const absl::Duration started_;
  absl::Duration update_cpu_;
  std::ofstream metrics_log_;
  std::unique_ptr<EventLog> event_log_;  // Null: this rank never led, or it cannot be written.
  std::unique_ptr<ProgressTracker> progress_;
  std::atomic<bool> begun_{false};
  mutable absl::Mutex mu_;
  std::string blocked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
