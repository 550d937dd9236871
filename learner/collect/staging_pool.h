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

// Buffers for the columns of several iterations, and the places of fragments in them.
namespace skein {

// The columns of one iteration while fragments are placed in them.
struct Staging {
  Staging(const Schema& schema, int64_t slots, int64_t segments) : columns(schema, slots, segments) {}

  bool complete() const { return placed == columns.fragments(); }
  // Slots that have a fragment, ascending. REQUIRES: one fragment per slot; no fragment is being copied.
  std::vector<int64_t> PlacedSlots() const;

  StagedColumns columns;
  uint32_t assigned = 0;          // Slots assigned so far, in order; mode async only.
  std::vector<uint32_t> vacated;  // Slots whose fragments were unusable; mode async only.
  uint32_t placing = 0;           // Fragments being copied.
  uint32_t placed = 0;            // Fragments whose copy is complete.
  uint64_t policy_version = 0;    // The oldest version that its fragments were made with.
  v1::StageSeconds stage_seconds;
  uint64_t failed_episodes = 0;  // Of its fragments.
};

// The place of an accepted fragment.
struct Place {
  Staging* staging = nullptr;
  uint32_t group = 0;  // The fragment's env group.
  int64_t slot = 0;
  int64_t segment = 0;
};

// The stagings of a learner. Each is free, in the queue of open iterations, or used by the trainer.
//   Begin -> Assign -> Placed | TakeBack -> TakeFront -> (trainer) -> ReleaseTraining
// Owns them; pointers to them are valid until Make. Not thread-safe, except as StagedColumns says.
class StagingPool {
 public:
  explicit StagingPool(const Schema& schema) : schema_(schema) {}

  // Replaces all stagings by `stagings` new ones. REQUIRES: NothingIsCopied().
  void Make(int64_t stagings, int64_t slots, int64_t segments);
  bool NothingIsCopied() const;

  size_t free() const { return free_.size(); }
  // Open iterations, the front first.
  const std::deque<Staging*>& queue() const { return queue_; }
  bool FrontIsComplete() const { return !queue_.empty() && queue_.front()->complete(); }
  bool FrontIsSettled() const { return queue_.empty() || queue_.front()->placing == 0; }
  // Fragments admitted and not trained on yet, and the number that there is room for.
  uint64_t admitted() const { return admitted_; }
  uint64_t room() const { return room_; }

  // Opens an iteration behind the others, in a free staging or, if there is none, a new one.
  Staging* Begin(uint64_t policy_version);
  // The copy of a fragment to `place` begins.
  void Assign(const Place& place);
  void Placed(const Place& place);
  // Instead of Placed: the fragment's values are unusable.
  void TakeBack(const Place& place);
  // Ends the front and hands it to the trainer until ReleaseTraining. REQUIRES: FrontIsSettled().
  Staging* TakeFront();
  // The trainer has finished with its staging.
  void ReleaseTraining();
  // Admitted fragments were trained on or dropped.
  void Forget(uint64_t fragments) { admitted_ -= fragments; }

 private:
  const Schema schema_;
  int64_t slots_ = 0, segments_ = 0;
  std::vector<std::unique_ptr<Staging>> all_;
  std::vector<Staging*> free_;  // The last is used first: it may still be in a cache.
  std::deque<Staging*> queue_;
  Staging* training_ = nullptr;
  uint64_t admitted_ = 0;
  uint64_t room_ = 0;
};

}  // namespace skein
