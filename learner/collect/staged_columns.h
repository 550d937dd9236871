// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "learner/collect/admission.h"
#include "trajectory/columns.h"
#include "trajectory/schema.h"

namespace skein {

// Columns assembled from fragments. Buffers are reused.   CheckedFragment -> Place -> Seal -> Columns
// Thread safety: one thread per slot may call Place at the same time. All other calls are made by one thread while no
// Place runs, in the order Reset, Place, Keep, Seal.
class StagedColumns : public Columns {
 public:
  StagedColumns(const Schema& fragment, int64_t slots, int64_t segments = 1);
  explicit StagedColumns(const FragmentShape& shape, int64_t slots, int64_t segments = 1)
      : StagedColumns(MakeSchema(shape), slots, segments) {}

  // Copies a checked fragment to its place (no lock needed against other slots). Successive segments of a slot share
  // the observation at their border, with equal values. InvalidArgument: a value is beyond its field's bound; the place
  // then holds garbage until another Place overwrites it. REQUIRES: it was checked against the schema given here.
  absl::Status Place(int64_t slot, int64_t segment, const CheckedFragment& fragment);
  // The policy state before the first step of the slot's first segment, float32 [E, A, S], as the ticket carried it;
  // null: zeros. Nothing happens where the policy has no memory. REQUIRES: it is the slot's Place's thread, or no Place
  // of the slot runs.
  void PlaceFirstState(int64_t slot, const v1::Tensor* state);
  // Keeps only `slots` (ascending), whose columns then lie side by side; the other slots are empty.
  void Keep(std::vector<int64_t> slots) { KeepSlots(std::move(slots)); }
  // Restores all slots.
  void Reset() { ResetSlots(); }
  // Joins the rows of fields with a varying number of rows, in order of slot and segment.
  void Seal();

 private:
  // For one fragment: the rows of each column of varying extent; empty for all other columns.
  using Varying = std::vector<std::vector<char>>;

  absl::Status PlaceRows(int64_t slot, int64_t segment, const Field& field, const CheckedFragment::Located& from,
                         Column* column);
  // Writes how episodes ended in each step of a fragment, and for which agents.
  void PlaceEnds(int64_t slot, int64_t segment, const CheckedFragment& fragment);
  void PlaceFinalIndex(const CheckedFragment& fragment, std::vector<char>* index) const;

  const Schema schema_;
  std::vector<int> source_;       // For each column, its field in the schema; -1: the column is computed here.
  std::vector<Varying> varying_;  // [slots, segments]
};

}  // namespace skein
