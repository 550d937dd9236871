// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/telemetry/rare_log.h"
#include "learner/collect/admission.h"
#include "learner/collect/staged_columns.h"
#include "learner/collect/step_ledger.h"
#include "learner/collect/ticket_office.h"
#include "learner/report/metrics.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// Collects the data of one update after the other from whatever actors there are.
//   CollectService -> Receive -> admission -> StagedColumns -> WaitForIteration -> Trainer
// Synchronous: an iteration is `fragments_per_block` fragments of every block, in env-index order; two may be open, the
// front and one behind it, in which blocks go on that are done with the front. There are two batches: when one is
// trained on and another one filled, there is none for an iteration behind. Asynchronous: an iteration is
// the next so many fragments that arrive, whosesoever they are; tickets are open all the time, as long as there is room
// for what they will bring.
// Thread-safe. Knows no gRPC: whoever calls Open, Receive or OpenIteration sends what TakeGrants then returns.
class Collector {
 public:
  struct Async {
    uint32_t fragments = 1;       // Of one iteration.
    uint64_t max_policy_lag = 4;  // What would be trained on more versions late than this is stale.
  };
  struct Options {
    std::string run_id;
    FragmentShape shape;               // Of one fragment.
    uint32_t first_env = 0;            // Run-wide index of the first environment of this learner's share.
    uint32_t num_envs = 1;             // N, of this learner's share.
    uint32_t fragments_per_block = 1;  // Of one iteration, if synchronous.
    std::optional<Async> async;
    uint32_t rank = 0, ranks = 1;         // Of this learner: the ids of its tickets are `rank` modulo `ranks`.
    uint64_t first_ticket_id = 1;         // Above those of earlier processes of the run.
    v1::StepAccount account;              // Totals of earlier processes.
    std::optional<v1::Tensor> env_state;  // Float64 [N, S] to continue from; nullopt = episode 0 everywhere.
  };
  Collector(const Options& options, LearnerMetrics* metrics);

  // An actor's stream begins, which came with `certificate` (as in ActorKey). InvalidArgument: no actor has such an id
  // or generation. FailedPrecondition: other run, protocol or environment. Aborted: the actor's life was closed; it
  // must join again. ResourceExhausted: there are too many lives.
  absl::StatusOr<v1::Welcome> Open(const v1::Hello& hello, const std::string& certificate = "");
  // Whether there are books of this life.
  bool Knows(const ActorKey& actor) const;
  // A life is over that did not say so, and had finished so many env steps, as far as it had tickets for them: what is
  // missing of them is lost, its tickets can be granted again. (Its stream may not have noticed yet that it is dead.)
  void CloseLife(const ActorKey& actor, uint64_t env_steps_collected);
  // A stream ended without goodbye.
  void Disconnect(const ActorKey& actor);
  // Goodbye: its books are closed and its tickets can be granted again.
  void Depart(const ActorKey& actor, const v1::Goodbye& goodbye);

  // Decides the fate of one batch that took `bytes` on the wire. Copies what it accepts; the caller may free what
  // `frame` was read from afterwards. REQUIRES: it has a batch.
  v1::Receipt Receive(const ActorKey& actor, const Frame& frame, uint64_t bytes);
  // A message that could not be read is counted.
  void ReceiveMalformed() { metrics_->CountMalformedMessage(); }
  std::vector<std::pair<ActorKey, v1::Ticket>> TakeGrants();

  // Synchronous: starts the next iteration, made with `policy_version`. REQUIRES: one is open at most; if one is, the
  // trainer is done with the batch it had. Asynchronous: `policy_version` is the newest from now on, and the trainer is
  // done with what it had.
  void OpenIteration(uint64_t policy_version);

  // Asynchronous: fragments made with `policy_version`, which the update under way resulted in, may come from now on.
  // Call before it is published. Synchronous: no effect.
  void Published(uint64_t policy_version);

  struct Iteration {
    StagedColumns* batch = nullptr;       // Sealed; the trainer's until it asks for the next one or opens one behind
                                          // the open one. Synchronous: its slots are the blocks of the share.
    uint64_t policy_version = 0;          // The oldest that its fragments were made with.
    std::optional<v1::Tensor> env_state;  // [N, S], where the next one begins; asynchronous: where tickets continue.
                                          // nullopt: not every block was served yet.
    v1::StageSeconds stage_seconds;       // Summed over its batches.
  };
  // Blocks until the front is complete, and ends it. nullopt: Stop() was called, or `timeout` is over.
  std::optional<Iteration> WaitForIteration(absl::Duration timeout);
  // Ends the front with what has arrived: its batch has the columns of blocks whose fragments are all there, maybe none
  // (asynchronous: of all fragments). Synchronous: its open tickets are void, what comes for them is stale, so is what
  // is there of blocks that lack something, and these continue from where it began; what other blocks have of the
  // iteration behind stays. Waits only for batches that are being copied. nullopt: Stop() was called. REQUIRES: an
  // iteration is open.
  std::optional<Iteration> TakeWhatIsThere();
  // Another share of the run's environments from now on, because ranks came or went: all tickets are void, what was
  // admitted and not trained on is lost, actors stay. The trainer must be done with what it had; no iteration is open
  // afterwards.
  struct Share {
    uint32_t first_env = 0;
    uint32_t num_envs = 1;
    uint32_t async_fragments = 1;         // Asynchronous: of one iteration.
    std::optional<v1::Tensor> env_state;  // As in Options.
  };
  void TakeShare(const Share& share);
  // Wakes WaitForIteration for good and voids open tickets. Idempotent.
  void Stop();

  // `env_steps`: steps() * num_envs() of the iteration's batch.
  void Trained(uint64_t env_steps);
  // Counts lives as closed that have been silent for `grace`.
  void CloseSilent(absl::Duration grace);
  // The run is over: all that is pending counts as lost. Returns the final account.
  v1::StepAccount CloseBooks();

  v1::StepAccount account() const;
  int actors() const;                    // With an open stream.
  uint64_t queued_batches() const;       // Admitted into iterations that are not trained on yet.
  std::string HoldersForPeople() const;  // "actor-1 (2), actor-4 (1)": who holds open tickets.
  // Since when the data of the front have been owed: from its opening or the end of the one before until it is
  // complete, and on over iterations that ended without all of theirs. 0 = nothing is owed.
  absl::Duration waiting() const;

 private:
  struct Staging {
    Staging(const Schema& schema, int64_t slots, int64_t segments) : batch(schema, slots, segments) {}
    StagedColumns batch;
    uint32_t assigned = 0;          // Fragments that have a place.
    std::vector<uint32_t> vacated;  // Asynchronous places whose fragments turned out to be unusable.
    uint32_t placing = 0;           // Fragments that are being copied.
    uint32_t placed = 0;            // Fragments that are in it.
    uint64_t policy_version = 0;
    v1::StageSeconds stage_seconds;
    bool complete() const { return placed == batch.fragments(); }
    // Asynchronous, while nothing is being copied.
    std::vector<int64_t> PlacedSlots() const {
      std::vector<int64_t> slots;
      for (uint32_t slot = 0; slot < assigned; ++slot) {
        if (!absl::c_linear_search(vacated, slot)) slots.push_back(slot);
      }
      return slots;
    }
  };
  struct Place {
    Staging* staging = nullptr;
    uint32_t block = 0;
    int64_t slot = 0;
    int64_t segment = 0;
  };

  bool Complete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || (!queue_.empty() && queue_.front()->complete());
  }
  bool Settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || queue_.empty() || queue_.front()->placing == 0;
  }
  // Ends the front of the queue, which is with the trainer from now on: the iteration, not sealed yet, and its slots
  // that can be trained on. Synchronous: those of whole blocks; what is in others is stale.
  std::pair<Iteration, std::vector<int64_t>> TakeFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What a batch of `actor` says about itself against its ticket and against what is possible.
  absl::Status CheckHeader(const ActorKey& actor, const v1::TrajectoryBatch& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Books a batch that came once.
  void Book(const ActorKey& actor, const v1::TrajectoryBatch& header, StepLedger::Fate fate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the env steps that it says it has collected so many are not counted.
  void NoteClaim(const ActorKey& actor, uint64_t not_counted);
  // Books one batch that came once and sets the receipt's result; where it goes if it is accepted.
  std::optional<Place> Decide(const ActorKey& actor, const v1::TrajectoryBatch& header, const absl::Status& valid,
                              const CheckedFragment& checked, v1::Receipt* receipt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A place for the next asynchronous fragment; nullopt: it would be trained on too many versions after
  // `policy_version`, more than by `lag`, which is set.
  std::optional<Place> AssignAsync(uint64_t policy_version, uint64_t* lag) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The values of an accepted batch turned out to be unusable: as if it had been refused at once.
  void TakeBack(const Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Opens tickets for as many fragments as there is room for.
  void OpenTickets() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Staging* Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeStagings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool NothingIsCopied() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReleaseTraining() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExportAccount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string run_id_;
  const Schema schema_;
  const uint64_t fragment_steps_;  // Of all its environments.
  const uint32_t fragments_per_block_;
  LearnerMetrics* const metrics_;
  RareLog claims_;

  mutable absl::Mutex mu_;
  std::optional<Async> async_ ABSL_GUARDED_BY(mu_);  // Whether it is one never changes.
  StepLedger ledger_ ABSL_GUARDED_BY(mu_);
  TicketOffice office_ ABSL_GUARDED_BY(mu_);
  // Every staging is free, in the queue (synchronous: the open iterations; asynchronous: the last one is being filled)
  // or with the trainer.
  std::vector<std::unique_ptr<Staging>> stagings_ ABSL_GUARDED_BY(mu_);
  std::vector<Staging*> free_ ABSL_GUARDED_BY(mu_);  // The last is used first: a cache may have it still.
  std::deque<Staging*> queue_ ABSL_GUARDED_BY(mu_);
  Staging* training_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t policy_version_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_version_ ABSL_GUARDED_BY(mu_) = 0;  // The newest when the front of the queue will be trained on.
  uint64_t queued_batches_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t room_ ABSL_GUARDED_BY(mu_) = 0;  // For so many, in all stagings.
  std::optional<absl::Duration> owed_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
