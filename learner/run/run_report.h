// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "env/env.h"
#include "learner/report/event_log.h"
#include "learner/report/iteration_log.h"
#include "learner/report/progress.h"
#include "learner/report/training_watch.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_callbacks.h"
#include "learner/run/run_context.h"
#include "learner/run/trainer.h"
#include "nlohmann/json_fwd.hpp"
#include "skein/v1/status.pb.h"

namespace skein {

// Reports a run's progress: in heartbeats, /metrics, metrics.jsonl and TensorBoard events.
// Only for the training thread, except FillReport and SetBlocked.
class RunReport {
 public:
  // All must outlive it.
  RunReport(const RunContext& context, const RunAccounts& accounts, RunCallbacks* callbacks);

  // Reports have progress from now on. `spec`: of the run's environment. `rules`: of its algorithm.
  void Begin(const RunRecord& record, const Trainer::Saved& checkpoint, const EnvSpec& spec,
             std::vector<WatchRule> rules);
  // Opens the run folder's files, unless they are open, and removes from them what follows `record`, from which the run
  // continues. PermissionDenied: metrics.jsonl cannot be written.
  absl::Status OpenLogs(const RunRecord& record);
  // The same where the run continues from the memory of a rank: an iteration that the rank which led before did not log
  // gets a line without statistics.
  absl::Status TakeOverLogs(const RunRecord& record);
  // Waits until the files are on the disk. Before each checkpoint, so that they have all of its iterations. A failure
  // is logged once.
  void SyncLogs();
  ProgressTracker& progress() { return *progress_; }  // REQUIRES: Begin.

  // Adds CPU time that an update took on the training thread.
  void AddUpdateCpu(absl::Duration cpu) { update_cpu_ += cpu; }
  // Writes a counted iteration to the metrics and, if `leads`, to the logs, with what the run's callback adds to it,
  // which is told of it. `actors`: stage times of all ranks' actors. `batch`: the training data, null if they are on
  // the device. `several_ranks`: `counted.samples` covers this rank only, so it is not logged.
  void LogIteration(const RunRecord& record, const ProgressTracker::Iteration& counted, const v1::StageSeconds& actors,
                    bool leads, bool several_ranks, const Trainer& trainer, Columns* batch);

  // Callable from any thread at any time. `missing`: which ranks are missing for a group; empty: enough are there.
  void SetBlocked(const std::string& missing);
  // Callable from any thread at any time. `progress` null: fills only the member's report.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const;

 private:
  v1::RunProgress Progress() const;
  void Append(const nlohmann::json& line);
  void NoteUnwritten(const absl::Status& status);
  // Warns where training looks wrong: in the log and in reports.
  void Watch(const ProgressTracker::Iteration& counted);
  // For TensorBoard.
  void LogEvents(const v1::RunProgress& progress, const Trainer& trainer, Columns* batch);

  const RunContext& context_;
  const RunAccounts& accounts_;
  RunCallbacks& callbacks_;
  const absl::Duration started_;
  absl::Duration update_cpu_;
  std::unique_ptr<IterationLog> iteration_log_;  // Null: this rank never led.
  uint64_t logged_ = 0;                          // Last iteration in it; 0 = none.
  bool unwritten_ = false;                       // A failure to write it was logged.
  std::unique_ptr<EventLog> event_log_;          // Null: this rank never led, or the file could not be opened.
  std::unique_ptr<ProgressTracker> progress_;
  std::optional<TrainingWatch> watch_;  // Begun together with progress_.
  std::atomic<bool> begun_{false};
  mutable absl::Mutex mu_;
  std::string blocked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
