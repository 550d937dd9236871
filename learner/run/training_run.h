// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env.h"
#include "learner/collect/service.h"
#include "learner/ranks/env_share.h"
#include "learner/run/collected_iterations.h"
#include "learner/run/elastic_ranks.h"
#include "learner/run/iteration_source.h"
#include "learner/run/rank_accounts.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_callbacks.h"
#include "learner/run/run_checkpoints.h"
#include "learner/run/run_context.h"
#include "learner/run/run_phases.h"
#include "learner/run/run_report.h"
#include "learner/run/trainer.h"

namespace skein {

// One run of the training loop, from the configuration to the last checkpoint, on one rank.
//   next iteration, agreed with the other ranks -> update -> publish -> add up -> report -> checkpoint
// If a rank is lost or joins, all ranks meet again before the next iteration. They divide the environments again and
// continue from the newest state that any of them has (docs/decisions/ranks-come-and-go.md).
class TrainingRun {
 public:
  // All pointers must outlive this. `expulsion`: not OK once the coordinator refuses to readmit this learner.
  TrainingRun(const LearnerOptions& options, CoordinatorClient* coordinator, LearnerMetrics* metrics,
              ShutdownSignal* shutdown, const Cancellation* expulsion);

  // Runs on the calling thread, the training thread. OK: the target is reached, or the run was stopped on request.
  // Aborted: the ranks could not meet, or the others continued without this one.
  absl::Status Run(LearnerService* service);
  // Whether this rank reports the run's progress. Callable from any thread at any time.
  bool reports() const { return ranks_.reports(); }
  // Callable from any thread at any time. `progress` null: fills only the member's report.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const { report_.FillReport(report, progress); }

 private:
  // The sum of all ranks' parts of an iteration.
  struct Sum {
    uint64_t failed_episodes = 0;
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]
    v1::StageSeconds stage_seconds;
    TicketState state;  // Of the whole run; a tensor that any rank lacks is absent.
  };

  absl::Status Prepare(LearnerService* service);
  absl::Status MakeTrainer();
  absl::Status Train();
  absl::Status End(absl::Status trained);

  // The loop. TrainUntilDone returns at the target, at a stop, or when ranks must meet again; Train then lets them meet
  // and continues.
  absl::Status TrainUntilDone();
  absl::Status TrainIteration(const IterationSource::Iteration& iteration);
  absl::StatusOr<UpdateStats> Update(const IterationSource::Iteration& iteration);
  absl::StatusOr<Sum> AddUp(v1::RankIteration mine);
  absl::Status AddUpForLastCheckpoint();
  // Reads the environments' state from the source if iterations do not contain it.
  absl::Status ReadState();
  absl::Status SaveCheckpoint();
  // Before each iteration, if the run has a callback: what it has set and whether it stops the run becomes known to all
  // ranks. Begins it on a rank that has come to lead.
  absl::Status FollowCallbacks();

  // Ranks. JoinGroup sets the group, trainer_, record_, share_ and own_state_.
  absl::Status JoinGroup();
  absl::Status Enter(const RankFormation* formation);  // Null: a single rank.
  absl::Status GoOnFromMemory(const RankFormation& formation, v1::StepAccount* lost);
  absl::Status GoOnFromCheckpoint();
  absl::Status KeepState();  // Into memory_.
  absl::Status Reform(const std::string& why);
  absl::Status TakeShare();
  absl::Status StopAlone(const absl::Status& why);
  absl::Status EndTogether();
  // The env steps at which this process ends.
  uint64_t Goal() const;

  const RunContext context_;
  RunAccounts accounts_;
  RunCallbacks callbacks_;
  RunReport report_;
  RunPhases phases_;
  ElasticRanks ranks_;
  RankAccounts rank_accounts_;
  RunCheckpoints checkpoints_;
  EnvSpec spec_;
  RunRecord record_;
  EnvShare share_;  // Of this rank.
  TicketState own_state_;
  RankDecision decision_;             // The latest.
  std::unique_ptr<Trainer> trainer_;  // Uses the ranks' group.
  // Several ranks: the learned state at record_'s iteration, also while an update is under way.
  std::shared_ptr<const Trainer::State> memory_;
  uint64_t own_steps_ = 0;                          // This rank's env steps in the update under way.
  std::unique_ptr<CollectedIterations> collected_;  // Null in mode on_device.
  std::unique_ptr<IterationSource> on_device_;      // Null in all other modes.
  IterationSource* source_ = nullptr;               // The one of the two that is not null.
};

}  // namespace skein
