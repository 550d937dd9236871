// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "learner/admission.h"
#include "learner/batch_assembler.h"
#include "learner/metrics.h"
#include "learner/step_ledger.h"
#include "learner/ticket_office.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// Collects one iteration at a time from whatever actors there are.
//   CollectService -> Receive -> admission -> StagedBatch -> WaitForIteration -> Trainer
// Thread-safe. Knows no gRPC: whoever calls Open, Receive or OpenIteration sends what TakeGrants then returns.
class Collector {
 public:
  struct Options {
    std::string run_id;
    BatchShape shape;
    uint32_t num_envs = 1;                // N
    uint64_t first_ticket_id = 1;         // Above those of earlier processes of the run.
    v1::StepAccount account;              // Totals of earlier processes.
    std::optional<v1::Tensor> env_state;  // Float64 [N, S] to continue from; nullopt = episode 0 everywhere.
  };
  Collector(const Options& options, LearnerMetrics* metrics);

  // An actor's stream begins. FailedPrecondition: other run, protocol or environment. Aborted: the
  // actor's life was closed; it must join again.
  absl::StatusOr<v1::Welcome> Open(const v1::Hello& hello);
  // A stream ended without goodbye.
  void Disconnect(const ActorKey& actor);
  // Goodbye: its books are closed and its tickets can be granted again.
  void Depart(const ActorKey& actor, const v1::Goodbye& goodbye);

  // Decides one batch's fate. Copies what it accepts; the caller may free `batch` afterwards.
  v1::Receipt Receive(const ActorKey& actor, const v1::TrajectoryBatch& batch);
  std::vector<std::pair<ActorKey, v1::Ticket>> TakeGrants();

  // Starts the next iteration. REQUIRES: the one before was returned by WaitForIteration, or none was opened.
  void OpenIteration(uint64_t policy_version);

  struct Iteration {
    StagedBatch* batch = nullptr;  // Sealed; the trainer's until the iteration after next is opened.
    uint64_t policy_version = 0;
    v1::Tensor env_state;            // [N, S] after its last step.
    v1::StageSeconds stage_seconds;  // Summed over its batches.
  };
  // Blocks until the open iteration is complete. nullopt: Stop() was called, or `timeout` is over.
  std::optional<Iteration> WaitForIteration(absl::Duration timeout);
  // Wakes WaitForIteration for good and voids open tickets. Idempotent.
  void Stop();

  void Trained(uint64_t env_steps);
  // Counts lives as closed that have been silent for `grace`.
  void CloseSilent(absl::Duration grace);
  // The run is over: all that is pending counts as lost. Returns the final account.
  v1::StepAccount CloseBooks();

  v1::StepAccount account() const;
  int actors() const;                    // With an open stream.
  uint64_t queued_batches() const;       // Admitted into iterations that are not trained on yet.
  std::string HoldersForPeople() const;  // "actor-1 (2), actor-4 (1)": who holds open tickets.

 private:
  bool Complete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || (open_ && office_.complete()); }
  // What a batch says about itself against its ticket and against what is possible.
  absl::Status CheckHeader(const v1::TrajectoryBatch& batch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExportAccount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string run_id_;
  const BatchShape shape_;
  LearnerMetrics* const metrics_;
  std::unique_ptr<StagedBatch> staged_[2];  // The one being filled changes with each OpenIteration.

  mutable absl::Mutex mu_;
  StepLedger ledger_ ABSL_GUARDED_BY(mu_);
  TicketOffice office_ ABSL_GUARDED_BY(mu_);
  int filling_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t policy_version_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t queued_batches_ ABSL_GUARDED_BY(mu_) = 0;
  v1::StageSeconds stage_seconds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
