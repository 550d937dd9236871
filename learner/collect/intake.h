// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "base/telemetry/rare_log.h"
#include "learner/collect/collect_mode.h"
#include "learner/collect/staging_pool.h"
#include "learner/collect/step_ledger.h"
#include "learner/collect/ticket_office.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Decides the fate of one fragment: accepted, duplicate, stale or rejected. Counts it once in the ledger and answers,
// refuses or reopens its ticket.   CheckFragment -> Decide -> (copy to its place) -> Finish
// Works on parts that the Collector owns and guards by one lock; the copy is done without the lock. The parts must
// outlive this. No I/O except a rate-limited log line. Not thread-safe.
class Intake {
 public:
  // `fragment_steps`: env steps of a fragment, over all its environments; the most where fragments differ.
  Intake(uint64_t fragment_steps, StepLedger* ledger, TicketOffice* office, StagingPool* pool, CollectMode* mode)
      : fragment_steps_(fragment_steps), ledger_(ledger), office_(office), pool_(pool), mode_(mode) {}

  // Counts a fragment from `actor` in the ledger and sets the receipt's result. Returns the fragment's place if it is
  // accepted. `valid`: admission's result; `sized`: it has the run's sizes. `state`: its env group's next state.
  std::optional<Place> Decide(const ConnectionId& actor, const v1::FragmentHeader& header, const absl::Status& valid,
                              bool sized, const TicketState& state, v1::Receipt* receipt);
  // Ends the copy of an accepted fragment. `placed` not OK: its data are unusable, so it counts as rejected.
  void Finish(const Place& place, const v1::FragmentHeader& header, const absl::Status& placed, TicketState state,
              v1::Receipt* receipt);
  // `actor` is granted a ticket.
  void Grant(const ConnectionId& actor) { ledger_->Grant(actor, fragment_steps_); }
  // Fragments that were placed cannot be trained on. REQUIRES: `fragments` is 0 where fragments differ in steps.
  void DropUnusable(uint64_t fragments) { ledger_->DropStale(fragments * fragment_steps_); }

  // Logs that `not_counted` of the env steps that `actor` claims to have collected are not counted; 0: no effect.
  void NoteClaim(const ConnectionId& actor, uint64_t not_counted);

 private:
  // Checks the header of a fragment from `actor` against its ticket and for plausible counts.
  absl::Status CheckHeader(const ConnectionId& actor, const v1::FragmentHeader& header) const;
  // Counts a fragment that is not a duplicate in the ledger.
  void Book(const ConnectionId& actor, const v1::FragmentHeader& header, StepLedger::Fate fate);

  const uint64_t fragment_steps_;
  StepLedger* const ledger_;
  TicketOffice* const office_;
  StagingPool* const pool_;
  CollectMode* const mode_;
  RareLog claims_;
};

}  // namespace skein
