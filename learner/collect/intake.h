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

// What becomes of one batch: accepted, duplicate, stale or rejected, once in the ledger, with its ticket answered,
// refused or granted again.   CheckFragment -> Decide -> (copy to its place) -> Finish Works on the parts of the
// Collector, which guards all by one lock; the copy is done without it. They must outlive this. No I/O but one log line
// now and then. Not thread-safe.
class Intake {
 public:
  // `fragment_steps`: steps of a fragment, of all its environments.
  Intake(uint64_t fragment_steps, StepLedger* ledger, TicketOffice* office, StagingPool* pool, CollectMode* mode)
      : fragment_steps_(fragment_steps), ledger_(ledger), office_(office), pool_(pool), mode_(mode) {}

  // Books a batch that `actor` sent and sets the receipt's result; where it goes if it is accepted. `valid`: what
  // admission said; `sized`: whether it has the run's sizes at least. `state`: where its env group continues.
  std::optional<Place> Decide(const ConnectionId& actor, const v1::TrajectoryBatch& header, const absl::Status& valid,
                              bool sized, const TicketState& state, v1::Receipt* receipt);
  // The data of an accepted batch are in place (`placed` OK), or turned out to be unusable: as if it had been refused.
  void Finish(const Place& place, const absl::Status& placed, TicketState state, v1::Receipt* receipt);

  // Says that of the env steps that `actor` claims to have collected so many are not counted, if any.
  void NoteClaim(const ConnectionId& actor, uint64_t not_counted);

 private:
  // What a batch of `actor` says about itself against its ticket and against what is possible.
  absl::Status CheckHeader(const ConnectionId& actor, const v1::TrajectoryBatch& header) const;
  // Books a batch that came once.
  void Book(const ConnectionId& actor, const v1::TrajectoryBatch& header, StepLedger::Fate fate);

  const uint64_t fragment_steps_;
  StepLedger* const ledger_;
  TicketOffice* const office_;
  StagingPool* const pool_;
  CollectMode* const mode_;
  RareLog claims_;
};

}  // namespace skein
