// SPDX-License-Identifier: Apache-2.0
#include "trajectory/columns.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/number/tensor_packing.h"

namespace skein {
namespace {

std::vector<Columns::Column> MakeColumns(const Schema& fragment) {
  std::vector<Columns::Column> columns;
  for (Field field : fragment.fields) {
    if (field.extent == Extent::kFragment || field.name == "agent_terminated") continue;
    if (field.name == "terminated" || field.name == "truncated") field.per_agent = true;
    columns.push_back({std::move(field), {}});
  }
  columns.push_back({{"final_index", v1::DATA_TYPE_INT64, Extent::kTruncation, true, 0, Bound::kLength, false}, {}});
  const int64_t memory = fragment.shape.policy_state_size;
  if (memory == 0) return columns;
  columns.push_back({{"ended", v1::DATA_TYPE_UINT8, Extent::kStep, false, 0, Bound::kFlag, false}, {}});
  columns.push_back(
      {{"first_policy_state", v1::DATA_TYPE_FLOAT32, Extent::kFragment, true, memory, Bound::kFinite, false}, {}});
  return columns;
}

}  // namespace

Columns::Columns(const Schema& fragment, int64_t slots, int64_t segments)
    : slots_(slots),
      segments_(segments),
      fragment_steps_(fragment.shape.steps),
      group_envs_(fragment.shape.group_envs),
      num_agents_(fragment.num_agents()),
      columns_(MakeColumns(fragment)) {
  ResetSlots();
}

int64_t Columns::SlotBytes(const Field& field) const {
  return group_envs_ * (field.per_agent ? num_agents_ : 1) * field.elements() * ElementSize(field.dtype);
}

Columns::Column* Columns::Find(absl::string_view field) {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [field](const Column& column) { return column.field.name == field; });
  return found == columns_.end() ? nullptr : &*found;
}

std::vector<int64_t> Columns::Dimensions(const Column& column) const {
  const Field& field = column.field;
  std::vector<int64_t> dimensions;
  if (field.of_steps()) {
    dimensions = {Rows(field), field.per_agent ? columns() : share_envs()};
  } else {
    dimensions = {static_cast<int64_t>(column.bytes.size()) / (field.elements() * ElementSize(field.dtype))};
  }
  if (field.width > 0) dimensions.push_back(field.width);
  return dimensions;
}

int64_t Columns::samples() const {
  const absl::Span<const uint8_t> active = values<uint8_t>("active");
  return num_agents_ == 1 ? steps() * columns() : std::count(active.begin(), active.end(), uint8_t{1});
}

void Columns::ResetSlots() {
  kept_.resize(slots_);
  std::iota(kept_.begin(), kept_.end(), int64_t{0});
  for (Column& column : columns_) {
    if (HasPlaces(column.field)) column.bytes.resize(Rows(column.field) * slots_ * SlotBytes(column.field));
  }
}

void Columns::KeepSlots(std::vector<int64_t> slots) {
  kept_ = std::move(slots);
  if (static_cast<int64_t>(kept_.size()) == slots_) return;
  for (Column& column : columns_) {
    if (!HasPlaces(column.field)) continue;
    const int64_t bytes = SlotBytes(column.field);
    char* to = column.bytes.data();
    for (int64_t row = 0; row < Rows(column.field); ++row) {
      for (const int64_t slot : kept_) {
        std::memmove(to, column.bytes.data() + (row * slots_ + slot) * bytes, bytes);
        to += bytes;
      }
    }
    column.bytes.resize(to - column.bytes.data());
  }
}

}  // namespace skein
