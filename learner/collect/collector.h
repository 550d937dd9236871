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
#include "skein/v1/config.pb.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Collects the data of successive updates from the connected actors.
//   LearnerService -> Receive -> admission -> StagingPool -> WaitForIteration -> Trainer
// CollectMode (SynchronousCollect, AsynchronousCollect or DirectionCollect) defines an iteration's fragments; Intake
// decides the fate of each. This class owns the parts, holds the lock and does the waiting. Thread-safe. Independent of
// gRPC: after Open, Receive or OpenIteration the caller sends the tickets that TakeGrants returns.
class Collector {
 public:
  struct Async {
    uint32_t fragments = 1;       // Of one iteration.
    uint64_t max_policy_lag = 4;  // A fragment whose policy lag at training would exceed this is stale.
  };
  struct Options {
    std::string run_id;
    FragmentShape shape;               // Of one fragment.
    uint32_t first_env = 0;            // Run-wide index of the first environment of this learner's share.
    uint32_t share_envs = 1;           // Of this learner's share.
    uint32_t fragments_per_group = 1;  // Of one iteration, if synchronous.
    std::optional<Async> async;        // nullopt: synchronous.
    v1::DirectionsConfig directions;   // Read only if the shape is of directions.
    uint32_t rank = 0, ranks = 1;      // Of this learner: its ticket ids are equal to `rank` modulo `ranks`.
    uint64_t first_ticket_id = 1;      // Above all ticket ids of earlier processes of the run.
    v1::StepAccount account;           // Totals of earlier processes.
    TicketState state;                 // To continue from, one row for each environment; empty = episode 0 everywhere.
  };
  Collector(const Options& options, LearnerMetrics* metrics);

  // An actor's stream begins, with `certificate` (as in ConnectionId). Errors as CheckHello, and Aborted: the account
  // of this connection is closed; the actor must join again. ResourceExhausted: there are too many connections.
  absl::StatusOr<v1::Welcome> Open(const v1::Hello& hello, const std::string& certificate = "");
  // Whether this connection has an account.
  bool Knows(const ConnectionId& actor) const;
  // A connection ended without goodbye after its actor had finished `env_steps_collected` steps, of which at most the
  // steps of its tickets count. Those that have not arrived are lost, and its tickets can be granted again.
  void Close(const ConnectionId& actor, uint64_t env_steps_collected);
  // A stream ended without goodbye.
  void Disconnect(const ConnectionId& actor);
  // Goodbye: closes the connection's account; its tickets can be granted again.
  void Depart(const ConnectionId& actor, const v1::Goodbye& goodbye) { Close(actor, goodbye.env_steps_collected()); }

  // Decides the fate of one fragment of `bytes` bytes on the wire. Copies an accepted one, so the caller may free the
  // bytes that `frame` was read from afterwards. REQUIRES: the frame has a fragment.
  v1::Receipt Receive(const ConnectionId& actor, const Frame& frame, uint64_t bytes);
  // Counts a message that could not be read.
  void ReceiveMalformed() { metrics_->CountMalformedMessage(); }
  TicketOffice::Grants TakeGrants();

  // Synchronous: starts the next iteration, collected with `policy_version`. REQUIRES: at most one is open; if one is,
  // the trainer has finished with its last batch. Asynchronous: `policy_version` is the newest from now on, and the
  // trainer has finished with its last batch.
  void OpenIteration(uint64_t policy_version, const WorkSettings& settings = {});
  // Asynchronous: fragments made with `policy_version`, the result of the current update, may arrive from now on. Call
  // before that policy is published. Synchronous: no effect.
  void Published(uint64_t policy_version);

  struct Iteration {
    StagedColumns* batch = nullptr;    // Sealed; valid until the trainer waits for the next one or opens one behind
                                       // the open one. Synchronous: its slots are the env groups of the share.
    uint64_t policy_version = 0;       // The oldest version that its fragments were made with.
    std::optional<TicketState> state;  // Where the next one begins, one row for each environment of the share;
                                       // asynchronous: where tickets continue. nullopt: a group has no state yet.
    v1::StageSeconds stage_seconds;    // Summed over its fragments.
    uint64_t failed_episodes = 0;      // The same.
  };
  // Blocks until the front (the oldest open iteration) is complete, and ends it. nullopt: Stop() was called, or
  // `timeout` is over.
  std::optional<Iteration> WaitForIteration(absl::Duration timeout);
  // Ends the front with the fragments that have arrived. Asynchronous: its batch has the columns of all of them.
  // Synchronous: it has the columns of the env groups whose fragments are all there, maybe none. The front's open
  // tickets become void. Answers to them are stale, as are the fragments of incomplete groups; these groups continue
  // as EnvGroups::EndIteration says. The other groups keep their fragments of the iteration behind. Waits only for
  // fragments that are being copied. nullopt: Stop() was called. REQUIRES: an iteration is open.
  std::optional<Iteration> TakeWhatIsThere();
  // Switches to another share of the run's environments, because ranks joined or left. All tickets become void, steps
  // admitted and not trained on are lost, and actors stay connected. No iteration is open afterwards.
  // REQUIRES: the trainer has finished with its last batch.
  struct Share {
    uint32_t first_env = 0;
    uint32_t share_envs = 1;
    uint32_t async_fragments = 1;  // Asynchronous: of one iteration.
    TicketState state;             // As in Options.
  };
  void TakeShare(const Share& share);
  // Makes WaitForIteration return at once from now on, and voids open tickets. Idempotent.
  void Stop();

  // `env_steps`: all those of the last iteration's batch.
  void Trained(uint64_t env_steps);
  // Closes the accounts of connections whose stream ended at least `grace` ago.
  void CloseSilent(absl::Duration grace);
  // The run is over: all pending steps count as lost. Returns the final account.
  v1::StepAccount CloseAccounts();

  v1::StepAccount account() const;
  int actors() const;                   // With an open stream.
  uint64_t queued_fragments() const;    // Admitted into iterations that are not trained on yet.
  std::string DescribeHolders() const;  // Actors that hold open tickets: "actor-1 (2), actor-4 (1)".
  // How long the learner has waited for the front's data: counted from its opening or the end of the iteration before
  // until it is complete, and further across iterations that ended incomplete. 0 = no data are awaited.
  absl::Duration waiting() const;

 private:
  bool Complete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || pool_.FrontIsComplete(); }
  bool Settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || pool_.FrontIsSettled(); }
  bool NothingIsCopied() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return pool_.NothingIsCopied(); }
  // Ends the front; the returned iteration is not sealed yet.
  Iteration TakeFront(std::vector<int64_t>* slots) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExportAccount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string run_id_;
  const Schema schema_;
  LearnerMetrics* const metrics_;

  mutable absl::Mutex mu_;
  StepLedger ledger_ ABSL_GUARDED_BY(mu_);
  TicketOffice office_ ABSL_GUARDED_BY(mu_);
  StagingPool pool_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<CollectMode> mode_ ABSL_PT_GUARDED_BY(mu_);
  Intake intake_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Duration> owed_since_ ABSL_GUARDED_BY(mu_);
  uint64_t fragments_taken_ ABSL_GUARDED_BY(mu_) = 0;      // In the last iteration's batch.
  uint64_t restarted_by_actors_ ABSL_GUARDED_BY(mu_) = 0;  // Episodes, as the accepted fragments say.
};

}  // namespace skein
