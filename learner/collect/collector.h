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
#include "learner/collect/admission.h"
#include "learner/collect/collect_mode.h"
#include "learner/collect/intake.h"
#include "learner/collect/staging_pool.h"
#include "learner/collect/step_ledger.h"
#include "learner/collect/ticket_office.h"
#include "learner/report/metrics.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Collects the data of one update after the other from the actors that are connected.
//   LearnerService -> Receive -> admission -> StagingPool -> WaitForIteration -> Trainer
// What an iteration is made of is the CollectMode's: SynchronousCollect or AsynchronousCollect. What becomes of a batch
// is the Intake's. This class has the parts, the lock and the waits. Thread-safe. Knows no gRPC: a caller of Open,
// Receive or OpenIteration sends what TakeGrants then returns.
class Collector {
 public:
  struct Async {
    uint32_t fragments = 1;       // Of one iteration.
    uint64_t max_policy_lag = 4;  // A fragment that would be trained on more versions late than this is stale.
  };
  struct Options {
    std::string run_id;
    FragmentShape shape;               // Of one fragment.
    uint32_t first_env = 0;            // Run-wide index of the first environment of this learner's share.
    uint32_t num_envs = 1;             // Of this learner's share.
    uint32_t fragments_per_group = 1;  // Of one iteration, if synchronous.
    std::optional<Async> async;        // nullopt: synchronous.
    uint32_t rank = 0, ranks = 1;      // Of this learner: the ids of its tickets are `rank` modulo `ranks`.
    uint64_t first_ticket_id = 1;      // Above those of earlier processes of the run.
    v1::StepAccount account;           // Totals of earlier processes.
    TicketState state;                 // To continue from, one row for each environment; empty = episode 0 everywhere.
  };
  Collector(const Options& options, LearnerMetrics* metrics);

  // An actor's stream begins, which came with `certificate` (as in ConnectionId). Errors as CheckHello, and Aborted:
  // the books of this connection are closed; the actor must join again. ResourceExhausted: there are too many.
  absl::StatusOr<v1::Welcome> Open(const v1::Hello& hello, const std::string& certificate = "");
  // Whether there are books of this connection.
  bool Knows(const ConnectionId& actor) const;
  // A connection ended that did not say so, and its actor had finished so many env steps, as far as it had tickets for
  // them: what is missing of them is lost, and its tickets can be granted again.
  void Close(const ConnectionId& actor, uint64_t env_steps_collected);
  // A stream ended without goodbye.
  void Disconnect(const ConnectionId& actor);
  // Goodbye: its books are closed and its tickets can be granted again.
  void Depart(const ConnectionId& actor, const v1::Goodbye& goodbye) { Close(actor, goodbye.env_steps_collected()); }

  // Decides the fate of one batch that took `bytes` on the wire. Copies what it accepts; the caller may free what
  // `frame` was read from afterwards. REQUIRES: it has a batch.
  v1::Receipt Receive(const ConnectionId& actor, const Frame& frame, uint64_t bytes);
  // A message that could not be read is counted.
  void ReceiveMalformed() { metrics_->CountMalformedMessage(); }
  TicketOffice::Grants TakeGrants();

  // Synchronous: starts the next iteration, made with `policy_version`. REQUIRES: one is open at most; if one is, the
  // trainer is done with the batch it had. Asynchronous: `policy_version` is the newest from now on, and the trainer is
  // done with what it had.
  void OpenIteration(uint64_t policy_version);
  // Asynchronous: fragments made with `policy_version`, which the update under way resulted in, may come from now on.
  // Call before it is published. Synchronous: no effect.
  void Published(uint64_t policy_version);

  struct Iteration {
    StagedColumns* batch = nullptr;    // Sealed; the trainer's until it asks for the next one or opens one behind
                                       // the open one. Synchronous: its slots are the env groups of the share.
    uint64_t policy_version = 0;       // The oldest that its fragments were made with.
    std::optional<TicketState> state;  // Where the next one begins, one row for each environment of the share;
                                       // asynchronous: where tickets continue. nullopt: not every group has one.
    v1::StageSeconds stage_seconds;    // Summed over its batches.
  };
  // Blocks until the front is complete, and ends it. nullopt: Stop() was called, or `timeout` is over.
  std::optional<Iteration> WaitForIteration(absl::Duration timeout);
  // Ends the front with what has arrived: its batch has the columns of env groups whose fragments are all there, maybe
  // none (asynchronous: of all fragments). Synchronous: its open tickets are void and what comes for them is stale, as
  // is what is there of groups that lack something; these continue as EnvGroups::EndIteration says. What other groups
  // have of the iteration behind stays. Waits only for batches that are being copied. nullopt: Stop() was called.
  // REQUIRES: an iteration is open.
  std::optional<Iteration> TakeWhatIsThere();
  // Another share of the run's environments from now on, because ranks came or went: all tickets are void, what was
  // admitted and not trained on is lost, actors stay. The trainer must be done with what it had; no iteration is open
  // afterwards.
  struct Share {
    uint32_t first_env = 0;
    uint32_t num_envs = 1;
    uint32_t async_fragments = 1;  // Asynchronous: of one iteration.
    TicketState state;             // As in Options.
  };
  void TakeShare(const Share& share);
  // Wakes WaitForIteration for good and voids open tickets. Idempotent.
  void Stop();

  // `env_steps`: steps() * num_envs() of the iteration's batch.
  void Trained(uint64_t env_steps);
  // Closes the books of connections that ended `grace` ago.
  void CloseSilent(absl::Duration grace);
  // The run is over: all that is pending counts as lost. Returns the final account.
  v1::StepAccount CloseBooks();

  v1::StepAccount account() const;
  int actors() const;                    // With an open stream.
  uint64_t queued_batches() const;       // Admitted into iterations that are not trained on yet.
  std::string HoldersForPeople() const;  // Actors that hold open tickets: "actor-1 (2), actor-4 (1)".
  // Since when the data of the front have been owed: from its opening or the end of the one before until it is
  // complete, and on over iterations that ended without all of theirs. 0 = nothing is owed.
  absl::Duration waiting() const;

 private:
  bool Complete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || pool_.FrontIsComplete(); }
  bool Settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || pool_.FrontIsSettled(); }
  bool NothingIsCopied() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return pool_.NothingIsCopied(); }
  // The iteration that the front was, not sealed yet.
  Iteration TakeFront(std::vector<int64_t>* slots) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExportAccount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string run_id_;
  const Schema schema_;
  const uint64_t fragment_steps_;  // Of all its environments.
  LearnerMetrics* const metrics_;

  mutable absl::Mutex mu_;
  StepLedger ledger_ ABSL_GUARDED_BY(mu_);
  TicketOffice office_ ABSL_GUARDED_BY(mu_);
  StagingPool pool_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<CollectMode> mode_ ABSL_PT_GUARDED_BY(mu_);
  Intake intake_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Duration> owed_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
