// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/collect/env_groups.h"
#include "learner/collect/staging_pool.h"

namespace skein {

// What an iteration is made of, where fragments go, and when tickets are open. Implementations work on the ticket
// office and the staging pool that they are given, and the Collector, which has both, guards all three by one lock.
//   OpenIteration -> Check -> Assign -> (copy) -> Committed | TakeBack -> TakeFront
// Another kind of work order than steps is another implementation (docs/decisions/work-orders.md).
// Not thread-safe.
class CollectMode {
 public:
  virtual ~CollectMode() = default;

  // The office has another share of the run's environments: makes stagings for it. `iteration_fragments`: of one
  // iteration; only asynchronous.
  virtual void TakeShare(uint32_t iteration_fragments) = 0;
  // As Collector.
  virtual void OpenIteration(uint64_t policy_version) = 0;
  virtual void Published(uint64_t policy_version) = 0;
  // Before the trainer waits for an iteration.
  virtual void BeforeWait() = 0;

  // Whether a fragment made with `policy_version` may answer an open ticket for `piece`; nullopt: its ticket is void.
  virtual bool MayAnswer(uint64_t policy_version, const std::optional<Piece>& piece) const = 0;
  // Where the fragment of an accepted ticket goes. OutOfRange: it is stale, with the reason; its env group goes on all
  // the same.
  virtual absl::StatusOr<Place> Assign(const Piece& piece, uint64_t policy_version) = 0;
  // The values of an assigned fragment turned out to be unusable; its ticket is reopened.
  virtual void TakeBack(const Place& place) = 0;
  // Tickets were committed or reopened: opens those that there is room for.
  virtual void OpenTickets() = 0;

  struct Front {
    Staging* staging = nullptr;
    std::vector<int64_t> slots;  // Those that can be trained on, ascending.
    uint64_t unusable = 0;       // Fragments that are there and cannot be.
    bool next_is_open = false;   // An iteration behind it was open, whose data are owed from now on.
  };
  // Ends the front with what is there. REQUIRES: nothing is being copied into it.
  virtual Front TakeFront() = 0;
  // Voids all tickets; none is opened any more.
  virtual void Stop() = 0;
};

}  // namespace skein
