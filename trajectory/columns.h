// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "trajectory/schema.h"

namespace skein {

// The trajectories of one update: one buffer per field, all env groups side by side.
//   fragments -> StagedColumns -> Columns -> Batch (Torch)
// Fragments have F steps x E environments: `slots` of them side by side (N = slots * E environments, M = N * A
// columns), `segments` one after the other (T = segments * F steps). Not thread-safe.
//
// The fields are those of the schema with a value for each column, so that an update need not handle environments:
//   fields with rows for steps            [T or T+1, M, width], or [T or T+1, N, width] if not per agent
//   fields of truncations and episodes    one row for each (and agent), in order of slot and segment
//   terminated, truncated uint8 [T, M]    the agent's part of the episode ended in a terminal state; the episode was
//                                         truncated while the agent was alive. agent_terminated is merged into these.
//   final_index int64 [K * A]             added: t * M + column of each row of final_obs
//   where the policy has a memory, also:
//   ended uint8 [T, N]                    the environment's episode ended with this step
//   first_policy_state float32 [M, S]     what the policy remembered before the first step
// Fields of extent kFragment are left out: they belong to the next ticket.
class Columns {
 public:
  struct Column {
    Field field;
    std::vector<char> bytes;
  };

  Columns(const Schema& fragment, int64_t slots, int64_t segments);

  int64_t steps() const { return fragment_steps_ * segments_; }
  int64_t columns() const { return share_envs() * num_agents_; }
  int64_t share_envs() const { return static_cast<int64_t>(kept_.size()) * group_envs_; }
  int64_t num_agents() const { return num_agents_; }
  int64_t samples() const;                                     // Steps of agents that were alive.
  int64_t fragments() const { return slots_ * segments_; }     // For which there is room.
  const std::vector<int64_t>& slots() const { return kept_; }  // Slots that have columns, ascending.

  const std::vector<Column>& all() const { return columns_; }
  // All dimensions of a column's field, as listed above.
  std::vector<int64_t> Dimensions(const Column& column) const;
  // The elements of a field; none if there is no such field. REQUIRES: Value is the field's type.
  template <typename Value>
  absl::Span<Value> values(absl::string_view field) {
    Column* const column = Find(field);
    if (column == nullptr) return {};
    return {reinterpret_cast<Value*>(column->bytes.data()), column->bytes.size() / sizeof(Value)};
  }
  template <typename Value>
  absl::Span<const Value> values(absl::string_view field) const {
    return const_cast<Columns*>(this)->values<Value>(field);
  }
  // Adds rows to a field of truncations or episodes.
  template <typename Value>
  void Append(absl::string_view field, absl::Span<const Value> rows) {
    Column* const column = Find(field);
    if (column == nullptr) return;
    const char* const bytes = reinterpret_cast<const char*>(rows.data());
    column->bytes.insert(column->bytes.end(), bytes, bytes + rows.size() * sizeof(Value));
  }

 protected:
  // Bytes of one slot's part of one row.
  int64_t SlotBytes(const Field& field) const;
  // Whether each slot has its part of each row.
  static bool HasPlaces(const Field& field) { return field.of_steps() || field.extent == Extent::kFragment; }
  int64_t Rows(const Field& field) const {
    return field.extent == Extent::kFragment ? 1 : steps() + (field.extent == Extent::kStepAndLast ? 1 : 0);
  }
  Column* Find(absl::string_view field);
  // Makes room for all slots.
  void ResetSlots();
  // Keeps only the columns of `slots` (ascending).
  void KeepSlots(std::vector<int64_t> slots);

  const int64_t slots_, segments_;
  const int64_t fragment_steps_, group_envs_, num_agents_;
  std::vector<Column> columns_;
  std::vector<int64_t> kept_;  // Slots that have columns.
};

}  // namespace skein
