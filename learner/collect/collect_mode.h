// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/config/direction_rules.h"
#include "learner/collect/env_groups.h"
#include "learner/collect/staging_pool.h"
#include "skein/v1/trajectory.pb.h"

// The interface of ways to collect: it defines the fragments of an iteration, their places, and the times at which
// tickets are open.
namespace skein {

// Settings that all tickets of an iteration share, besides the policy.
struct WorkSettings {
  uint32_t env_phase = 0;        // Ticket.phase.
  DirectionSettings directions;  // Of work that is directions.
};

// Defines which fragments make up an iteration, where each is placed, and when tickets are open. Implementations use a
// ticket office and a staging pool. The Collector owns these two and guards all three by one lock.
//   OpenIteration -> MayAnswer -> Assign -> (copy) -> OpenTickets | TakeBack -> TakeFront
// Each kind of work order has an implementation of its own (docs/decisions/work-orders.md).
// Not thread-safe.
class CollectMode {
 public:
  virtual ~CollectMode() = default;

  // The office now has another share of the run's environments: makes stagings for it. `iteration_fragments`: fragments
  // of one iteration; used in mode async only.
  virtual void TakeShare(uint32_t iteration_fragments) = 0;
  // As in Collector.
  virtual void OpenIteration(uint64_t policy_version, const WorkSettings& settings) = 0;
  virtual void Published(uint64_t policy_version) = 0;
  // Called before the trainer waits for an iteration.
  virtual void BeforeWait() = 0;

  // Whether a fragment made with `policy_version` may answer an open ticket for `piece`. nullopt: the ticket is void.
  virtual bool MayAnswer(uint64_t policy_version, const std::optional<Piece>& piece) const = 0;
  // The place of an accepted ticket's fragment. OutOfRange: the fragment is stale, with the reason; its env group
  // continues from it all the same.
  virtual absl::StatusOr<Place> Assign(const Piece& piece, uint64_t policy_version) = 0;
  // The values of an assigned fragment turned out to be unusable; its ticket is reopened.
  virtual void TakeBack(const Place& place) = 0;
  // Called after a ticket was committed or reopened: opens as many tickets as there is room for.
  virtual void OpenTickets() = 0;
  // Fills in what a ticket of the front that is about to be sent says beside its env group.
  virtual void Complete(v1::Ticket* ticket) const { (void)ticket; }

  struct Front {
    Staging* staging = nullptr;
    std::vector<int64_t> slots;  // Slots that can be trained on, ascending.
    uint64_t unusable = 0;       // Fragments placed in slots that cannot be trained on.
    bool next_is_open = false;   // An iteration behind it is open: it is the front now, and its data are awaited.
  };
  // Ends the front with the fragments placed so far. REQUIRES: no fragment is being copied into it.
  virtual Front TakeFront() = 0;
  // Voids all tickets; opens no more.
  virtual void Stop() = 0;
};

}  // namespace skein
