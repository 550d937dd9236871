// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/process/cancellation.h"
#include "base/process/shutdown.h"
#include "learner/collect/collector.h"
#include "learner/collect/env_share.h"
#include "learner/collect/policy_publisher.h"
#include "learner/collect/service.h"
#include "learner/ranks/rank_forming.h"
#include "learner/ranks/rank_group.h"
#include "learner/ranks/rank_roll.h"
#include "learner/report/event_log.h"
#include "learner/report/metrics.h"
#include "learner/report/progress.h"
#include "learner/run/learner.h"
#include "learner/run/trainer.h"
#include "member/coordinator_client.h"

namespace skein {

// One run of the training loop, from the configuration to the last checkpoint, on one rank.
//   open iteration -> wait for its data -> agree with the other ranks -> update -> publish -> checkpoint
// A rank that is lost, or a new one, makes all meet again before the next iteration: they share out the environments
// anew and go on from the newest state that any of them has (docs/decisions/ranks-come-and-go.md). In mode on_device:
// agree with the other ranks -> collect -> update -> checkpoint.
class TrainingRun {
 public:
  // All pointers must outlive it. `expulsion`: why the coordinator does not take this learner back.
  TrainingRun(const LearnerOptions& options, CoordinatorClient* coordinator, LearnerMetrics* metrics,
              ShutdownSignal* shutdown, const Cancellation* expulsion);

  // On the thread that trains. OK: trained until done, or stopped on request. Aborted: the ranks could not meet, or the
  // others went on without this one.
  absl::Status Run(LearnerService* service);
  // Whether this rank is the one that tells the run's progress. Callable from any thread at any time.
  bool reports() const { return reports_; }
  // Callable from any thread at any time. `progress` null: only the member's report is asked for.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const;

 private:
  // What the ranks' parts of an iteration add up to.
  struct Sum {
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]
    v1::StageSeconds stage_seconds;
    std::optional<v1::Tensor> env_state;  // [N, S], if every rank gave its part.
  };

  absl::Status Prepare();
  absl::Status MakeTrainer();
  absl::Status MakeCollector();
  absl::Status OpenLogs();
  // Ranks. After JoinGroup: group_, trainer_, record_, share_, own_env_state_.
  absl::Status JoinGroup();
  absl::StatusOr<RankFormation> MeetRanks();
  absl::Status FormGroup(const RankFormation& formation);
  absl::Status Enter(const RankFormation* formation);  // Null: a single rank.
  absl::Status GoOnFromMemory(const RankFormation& formation, v1::StepAccount* lost);
  absl::Status GoOnFromCheckpoint();
  // What ranks that are gone leave behind in the books, if the lives in `there` are not.
  v1::StepAccount Settle(const std::vector<uint32_t>& there) const;
  v1::StepAccount LostRanks() const;
  absl::Status KeepState();  // Into memory_.
  absl::Status Reform(LearnerService* service, const std::string& why);
  absl::Status TakeUpShare();
  absl::Status StopAlone(const absl::Status& why);
  absl::Status TrainWithThoseThere(LearnerService* service);
  absl::Status EndTogether();
  bool NewcomerIsThere();
  absl::Status TrainUntilDone(LearnerService* service);
  void Open(LearnerService* service);
  // Waits for the next iteration and for the other ranks'. nullopt: stop. Sets decision_.
  absl::StatusOr<std::optional<Collector::Iteration>> NextIteration(LearnerService* service);
  // Another look at the data; says now and then what is waited for.
  void KeepWaiting(LearnerService* service, absl::Duration* told);
  // `columns`: of this rank's batch, if it is ready.
  absl::StatusOr<RankDecision> AgreeWithRanks(std::optional<int64_t> columns);
  // Mode on_device: no collector, no actors; iterations are collected here.
  bool on_device() const { return config_.sync().mode() == v1::SYNC_MODE_ON_DEVICE; }
  absl::Status BeginOnDevice();
  absl::Status TrainOnDeviceUntilDone();
  void CountTrained(uint64_t own_steps);
  uint32_t AsyncFragments() const;  // Of this rank's part of an iteration, in mode async.
  // Counts steps of this rank in mode on_device.
  void CountOnDevice(uint64_t collected, uint64_t trained);
  // Trains on `batch`, or on what was collected on the device if null. env_state: where its environments are.
  absl::Status TrainIteration(Columns* batch, const Trainer::Collected& data, uint64_t policy_version,
                              std::optional<v1::Tensor> env_state);
  absl::StatusOr<Sum> AddUp(v1::RankIteration mine);
  absl::Status AddUpForLastCheckpoint();
  absl::Status Publish();
  absl::Status SaveCheckpoint();
  void LogIteration(const v1::StageSeconds& actors, const ProgressTracker::Iteration& counted, Columns* batch);
  // For TensorBoard. `batch`: what was trained on, null if it was on the device.
  void LogEvents(const v1::RunProgress& progress, Columns* batch);
  v1::RunProgress Progress() const;
  v1::StepAccount OwnAccount() const;
  v1::StepAccount Account() const;
  int place() const { return group_ == nullptr ? 0 : group_->rank(); }
  bool stopping() const { return shutdown_->signalled() || !expulsion_->status().ok(); }

  const LearnerOptions& options_;
  CoordinatorClient* const coordinator_;
  const v1::RunConfig config_;
  const std::string run_id_;
  LearnerMetrics* const metrics_;
  ShutdownSignal* const shutdown_;
  const Cancellation* const expulsion_;
  const std::string checkpoints_;

  // Of the training thread.
  RunRecord record_;
  uint64_t saved_env_steps_ = 0;
  uint64_t next_save_ = 0;
  EnvSpec spec_;
  uint64_t agents_ = 1;         // Of an environment.
  EnvShare share_;              // Of this rank.
  Trainer::Saved checkpoint_;   // The newest.
  int64_t fragment_steps_ = 1;  // Of all environments of a block.
  uint64_t published_ = 0;      // The newest policy version.
  uint64_t open_ = 0;           // Iterations that are not trained on yet.
  absl::Duration arrived_;      // When data last arrived, or were first waited for.
  bool starves_ = false;        // Went on short, and nothing has arrived since.
  std::optional<v1::Tensor> own_env_state_;
  RankDecision decision_;
  absl::Duration started_;
  absl::Duration update_cpu_;  // Of the training thread, in updates.
  std::ofstream metrics_log_;
  std::unique_ptr<EventLog> event_log_;  // Null: this rank never led, or it cannot be written.
  std::unique_ptr<RankGroup> group_;     // Null: a single rank.
  std::unique_ptr<Trainer> trainer_;     // After group_, which it uses.

  // Of the training thread, of several ranks.
  const uint32_t life_;                        // Random, this process's.
  bool leads_;                                 // The first of its group: writes checkpoints and tells progress.
  uint64_t group_number_ = 0, attempted_ = 0;  // As in RankOffer.
  std::vector<uint32_t> lives_;                // By place in the newest group.
  std::vector<v1::StepAccount> told_;          // By place, as last told.
  std::set<uint32_t> ranks_there_;
  std::shared_ptr<const Trainer::State> memory_;  // At record_'s iteration, while an update is under way or none is.
  bool in_update_ = false;                        // One is under way or broke off.
  uint64_t own_steps_ = 0;                        // This rank's env steps in it.
  std::vector<uint64_t> in_flight_;               // Everybody's, by place, until all have told their accounts after it.
  std::unique_ptr<RankRoll> roll_;
  absl::Duration next_roll_;
  bool newcomer_ = false;

  PolicyPublisher publisher_;
  // Set before the service serves them.
  std::unique_ptr<Collector> collector_;  // Null in mode on_device.
  std::unique_ptr<ProgressTracker> progress_;
  std::atomic<bool> prepared_{false};
  std::atomic<bool> reports_;

  mutable absl::Mutex mu_;
  v1::StepAccount others_ ABSL_GUARDED_BY(mu_);          // Of the other ranks, as they last said.
  v1::StepAccount device_account_ ABSL_GUARDED_BY(mu_);  // Of this rank, in mode on_device or before its collector.
  v1::StepAccount lost_ranks_ ABSL_GUARDED_BY(mu_);      // Of ranks that are gone, the same on all.
  std::string blocked_ ABSL_GUARDED_BY(mu_);             // Who is missing; empty: enough are there.
};

}  // namespace skein
