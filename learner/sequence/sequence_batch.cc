// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/sequence_batch.h"

#include <algorithm>
#include <numeric>

namespace skein {
namespace {

// <0, 0, >0: whether sequence a comes before b in a batch.
int Compare(const Sequences& from, uint32_t a, uint32_t b) {
  if (from.steps(a) != from.steps(b)) return from.steps(a) > from.steps(b) ? -1 : 1;
  if (from.cut[a] != from.cut[b]) return from.cut[a] < from.cut[b] ? -1 : 1;
  const auto* const keys = from.classes.data();
  const auto order = std::mismatch(keys + from.begins[a], keys + from.begins[a + 1], keys + from.begins[b]);
  if (order.first == keys + from.begins[a + 1]) return 0;
  return *order.first < *order.second ? -1 : 1;
}

}  // namespace

SequenceBatch MakeBatch(const Sequences& from, const std::vector<uint32_t>& chosen, uint32_t parts) {
  std::vector<uint32_t> order = chosen;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return Compare(from, a, b) < 0; });
  SequenceBatch batch;
  Sequences& rows = batch.rows;
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t sequence = order[i];
    batch.steps += from.steps(sequence);
    ++batch.sequences;
    if (i > 0 && Compare(from, order[i - 1], sequence) == 0) {
      ++batch.weights.back();
      continue;
    }
    batch.distinct_steps += from.steps(sequence);
    rows.classes.insert(rows.classes.end(), from.classes.begin() + from.begins[sequence],
                        from.classes.begin() + from.begins[sequence + 1]);
    rows.begins.push_back(static_cast<uint32_t>(rows.classes.size()));
    rows.cut.push_back(from.cut[sequence]);
    batch.weights.push_back(1);
  }
  // A part ends with the row in whose middle its share of the steps is reached.
  batch.parts.push_back(0);
  uint64_t done = 0;
  uint32_t row = 0;
  for (uint32_t part = 1; part <= parts; ++part) {
    const uint64_t until = batch.distinct_steps * part / parts;
    while (row < rows.size() && done + rows.steps(row) / 2 < until) done += rows.steps(row++);
    if (part == parts) row = static_cast<uint32_t>(rows.size());
    batch.parts.push_back(row);
  }
  return batch;
}

uint64_t SequencesOf(const SequenceBatch& batch, uint32_t first, uint32_t last) {
  const auto begin = batch.weights.begin();
  return std::accumulate(begin + first, begin + last, uint64_t{0});
}

PackedSteps PackRows(const SequenceBatch& batch, uint32_t first, uint32_t last) {
  PackedSteps packed;
  if (first == last) return packed;
  const Sequences& rows = batch.rows;
  uint32_t active = last - first;
  for (uint32_t t = 0; t < rows.steps(first); ++t) {
    while (rows.steps(first + active - 1) <= t) --active;
    packed.offsets.push_back(packed.places());
    packed.counts.push_back(active);
    for (uint32_t row = first; row < first + active; ++row) {
      const uint32_t begin = rows.begins[row];
      packed.input.push_back(t == 0 ? Vocabulary::kStart : rows.classes[begin + t - 1]);
      packed.target.push_back(t < rows.length(row) ? rows.classes[begin + t] : Vocabulary::kEnd);
      packed.weight.push_back(static_cast<float>(batch.weights[row]));
    }
  }
  return packed;
}

}  // namespace skein
