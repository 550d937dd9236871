// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "learner/collect/staged_columns.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/schema.h"

namespace skein {

// The columns of one iteration, and how far they are filled.
struct Staging {
  Staging(const Schema& schema, int64_t slots, int64_t segments) : columns(schema, slots, segments) {}

  bool complete() const { return placed == columns.fragments(); }
  // Slots that have a fragment, ascending. REQUIRES: one fragment a slot, nothing is being copied.
  std::vector<int64_t> PlacedSlots() const;

  StagedColumns columns;
  uint32_t assigned = 0;          // Slots given out in order, in asynchronous collection.
  std::vector<uint32_t> vacated;  // Slots whose fragments turned out to be unusable, in asynchronous collection.
  uint32_t placing = 0;           // Fragments that are being copied.
  uint32_t placed = 0;            // Fragments that are in it.
  uint64_t policy_version = 0;    // The oldest that its fragments were made with.
  v1::StageSeconds stage_seconds;
};

// Where an accepted fragment goes.
struct Place {
  Staging* staging = nullptr;
  uint32_t group = 0;  // The env group it is of.
  int64_t slot = 0;
  int64_t segment = 0;
};

// The stagings of a learner. Each is free, in the queue of open iterations, or with the trainer.
//   Begin -> Assign -> Placed | TakeBack -> TakeFront -> (trainer) -> ReleaseTraining
// Owns them; they stay where they are until Make. Not thread-safe, but for what Staging::columns says.
class StagingPool {
 public:
  explicit StagingPool(const Schema& schema) : schema_(schema) {}

  // Makes `stagings` new ones instead of those there are. REQUIRES: NothingIsCopied().
  void Make(int64_t stagings, int64_t slots, int64_t segments);
  bool NothingIsCopied() const;

  size_t free() const { return free_.size(); }
  // Open iterations, the front first.
  const std::deque<Staging*>& queue() const { return queue_; }
  bool FrontIsComplete() const { return !queue_.empty() && queue_.front()->complete(); }
  bool FrontIsSettled() const { return queue_.empty() || queue_.front()->placing == 0; }
  // Fragments that were admitted and not trained on, and how many there is room for.
  uint64_t admitted() const { return admitted_; }
  uint64_t room() const { return room_; }

  // Opens an iteration behind the others, in a free staging or, if there is none, a new one.
  Staging* Begin(uint64_t policy_version);
  // A fragment goes there; it is being copied from now on.
  void Assign(const Place& place);
  void Placed(const Place& place);
  // Its values turned out to be unusable.
  void TakeBack(const Place& place);
  // Ends the front, which is the trainer's from now on. REQUIRES: it is settled.
  Staging* TakeFront();
  // The trainer is done with what it had.
  void ReleaseTraining();
  // Admitted fragments were trained on or dropped.
  void Forget(uint64_t fragments) { admitted_ -= fragments; }

 private:
  const Schema schema_;
  int64_t slots_ = 0, segments_ = 0;
  std::vector<std::unique_ptr<Staging>> all_;
  std::vector<Staging*> free_;  // The last is used first: a cache may have it still.
  std::deque<Staging*> queue_;
  Staging* training_ = nullptr;
  uint64_t admitted_ = 0;
  uint64_t room_ = 0;
};

}  // namespace skein
