// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/sequence/sequence_store.h"

namespace skein {

// The sequences of one gradient step. Equal ones are one row with their number as its weight, which leaves the loss as
// it is. Rows are in order of length, the longest first, then of their classes.
struct SequenceBatch {
  uint64_t number = 0;  // In its epoch.
  Sequences rows;
  std::vector<uint32_t> weights;  // [rows] Sequences that are equal to it.
  std::vector<uint32_t> parts;    // [parts + 1] Row at which a part begins; about as many steps in each.
  uint64_t sequences = 0;         // Sum of weights.
  uint64_t steps = 0;             // What the loss is a mean over: weight x steps, summed.
  uint64_t distinct_steps = 0;    // That are computed.
};

// Of the sequences `chosen` of `from`.
SequenceBatch MakeBatch(const Sequences& from, const std::vector<uint32_t>& chosen, uint32_t parts);

// Rows as the model reads them, one step of all rows after the other.
// Step t has the first counts[t] rows; its first place is offsets[t]. Nothing is padded.
struct PackedSteps {
  std::vector<uint32_t> counts, offsets;  // [longest]
  std::vector<uint32_t> input;            // [places] Class of the key before; Vocabulary::kStart at step 0.
  std::vector<uint32_t> target;           // [places] Class of the key; Vocabulary::kEnd after the last.
  std::vector<float> weight;              // [places] Of its row.

  uint32_t places() const { return static_cast<uint32_t>(input.size()); }
};

// Sequences of rows first .. last-1.
uint64_t SequencesOf(const SequenceBatch& batch, uint32_t first, uint32_t last);

// Of rows first .. last-1.
PackedSteps PackRows(const SequenceBatch& batch, uint32_t first, uint32_t last);

}  // namespace skein
