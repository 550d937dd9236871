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
#include "learner/collect/env_share.h"
#include "learner/collect/service.h"
#include "learner/run/collected_iterations.h"
#include "learner/run/elastic_ranks.h"
#include "learner/run/iteration_source.h"
#include "learner/run/rank_books.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_checkpoints.h"
#include "learner/run/run_context.h"
#include "learner/run/run_report.h"
#include "learner/run/trainer.h"

namespace skein {

// One run of the training loop, from the configuration to the last checkpoint, on one rank.
//   next iteration, agreed with the other ranks -> update -> publish -> add up -> report -> checkpoint
// A rank that is lost, or a new one, makes all meet again before the next iteration: they share out the environments
// anew and go on from the newest state that any of them has (docs/decisions/ranks-come-and-go.md).
class TrainingRun {
 public:
  // All pointers must outlive it. `expulsion`: why the coordinator does not take this learner back.
  TrainingRun(const LearnerOptions& options, CoordinatorClient* coordinator, LearnerMetrics* metrics,
              ShutdownSignal* shutdown, const Cancellation* expulsion);

  // On the thread that trains. OK: trained until done, or stopped on request. Aborted: the ranks could not meet, or the
  // others went on without this one.
  absl::Status Run(LearnerService* service);
  // Whether this rank is the one that tells the run's progress. Callable from any thread at any time.
  bool reports() const { return ranks_.reports(); }
  // Callable from any thread at any time. `progress` null: only the member's report is asked for.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const { report_.FillReport(report, progress); }

 private:
  // What the ranks' parts of an iteration add up to.
  struct Sum {
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]
    v1::StageSeconds stage_seconds;
    TicketState state;  // Of the whole run, as far as every rank gave its part.
  };

  absl::Status Prepare(LearnerService* service);
  absl::Status MakeTrainer();
  absl::Status Train();
  absl::Status End(absl::Status trained);

  // The loop. TrainUntilDone: until the target, a stop, or until ranks meet anew; Train goes on after these.
  absl::Status TrainUntilDone();
  absl::Status TrainIteration(const IterationSource::Iteration& iteration);
  absl::StatusOr<UpdateStats> Update(const IterationSource::Iteration& iteration);
  absl::StatusOr<Sum> AddUp(v1::RankIteration mine);
  absl::Status AddUpForLastCheckpoint();
  // Asks the source where the environments are, if iterations do not tell.
  absl::Status ReadEnvState();
  absl::Status SaveCheckpoint();

  // Ranks. After JoinGroup: a group, trainer_, record_, share_, own_state_.
  absl::Status JoinGroup();
  absl::Status Enter(const RankFormation* formation);  // Null: a single rank.
  absl::Status GoOnFromMemory(const RankFormation& formation, v1::StepAccount* lost);
  absl::Status GoOnFromCheckpoint();
  absl::Status KeepState();  // Into memory_.
  absl::Status Reform(const std::string& why);
  absl::Status TakeShare();
  absl::Status StopAlone(const absl::Status& why);
  absl::Status EndTogether();

  const RunContext context_;
  RunAccounts accounts_;
  RunReport report_;
  ElasticRanks ranks_;
  RankBooks books_;
  RunCheckpoints checkpoints_;
  EnvSpec spec_;
  RunRecord record_;
  EnvShare share_;  // Of this rank.
  TicketState own_state_;
  RankDecision decision_;             // The last.
  std::unique_ptr<Trainer> trainer_;  // Uses the ranks' group.
  // Several ranks: at record_'s iteration, while an update is under way or none is.
  std::shared_ptr<const Trainer::State> memory_;
  uint64_t own_steps_ = 0;                          // This rank's env steps in the update under way.
  std::unique_ptr<CollectedIterations> collected_;  // Null in mode on_device.
  std::unique_ptr<IterationSource> on_device_;      // Null in all other modes.
  IterationSource* source_ = nullptr;               // Whichever there is.
};

}  // namespace skein
