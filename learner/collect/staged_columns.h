// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "learner/collect/admission.h"
#include "trajectory/columns.h"
#include "trajectory/schema.h"

namespace skein {

// Columns that are put together from fragments. Buffers are reused. One thread per slot may Place at the same time;
// everything else by one thread while nobody places, in the order Reset, Place, Keep, Seal.
//   CheckedFragment -> Place -> Seal -> Columns
class StagedColumns : public Columns {
 public:
  StagedColumns(const Schema& fragment, int64_t slots, int64_t segments = 1);
  explicit StagedColumns(const FragmentShape& shape, int64_t slots, int64_t segments = 1)
      : StagedColumns(MakeSchema(shape), slots, segments) {}

  // Copies a checked fragment to its place (no lock needed against other slots). What a slot's segments say about the
  // observation where they meet is the same. InvalidArgument: a value is beyond its field's bound; the place then holds
  // what another Place overwrites. REQUIRES: it was checked against the schema given here.
  absl::Status Place(int64_t slot, int64_t segment, const CheckedFragment& fragment);
  // The slots that are not among `slots` (ascending) have nothing: the others' columns move together.
  void Keep(std::vector<int64_t> slots) { KeepSlots(std::move(slots)); }
  // Makes room for all slots again.
  void Reset() { ResetSlots(); }
  // Joins what fragments brought in varying number, in order of slot and segment.
  void Seal();

 private:
  // Of one fragment, the rows of each column of varying extent; empty for the others.
  using Varying = std::vector<std::vector<char>>;

  absl::Status PlaceRows(int64_t slot, int64_t segment, const Field& field, const CheckedFragment::Located& from,
                         Column* column);
  // How episodes ended in each step of a fragment, and for which agents.
  void PlaceEnds(int64_t slot, int64_t segment, const CheckedFragment& fragment);
  void PlaceFinalIndex(const CheckedFragment& fragment, std::vector<char>* index) const;

  const Schema schema_;
  std::vector<int> source_;       // Of each column, the field of the schema; -1: it is made here.
  std::vector<Varying> varying_;  // [slots, segments]
};

}  // namespace skein
