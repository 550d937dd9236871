// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/staged_columns.h"

#include <cstring>
#include <utility>

#include "base/number/tensor_packing.h"
#include "learner/collect/float_reader.h"

namespace skein {

StagedColumns::StagedColumns(const Schema& fragment, int64_t slots, int64_t segments)
    : Columns(fragment, slots, segments), schema_(fragment), varying_(slots * segments) {
  for (const Column& column : columns_) source_.push_back(schema_.Find(column.field.name));
}

absl::Status StagedColumns::Place(int64_t slot, int64_t segment, const CheckedFragment& fragment) {
  Varying& varying = varying_[slot * segments_ + segment];
  varying.assign(columns_.size(), {});
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (source_[i] < 0) continue;
    const CheckedFragment::Located& from = fragment.fields[static_cast<size_t>(source_[i])];
    if (!column.field.of_steps()) {
      varying[i] = from.values;
    } else if (column.field.bound != Bound::kFlag || schema_.fields[source_[i]].per_agent == column.field.per_agent) {
      if (absl::Status s = PlaceRows(slot, segment, column.field, from, &column); !s.ok()) return s;
    }
  }
  PlaceEnds(slot, segment, fragment);
  PlaceFinalIndex(fragment, &varying[static_cast<size_t>(Find("final_index") - columns_.data())]);
  return absl::OkStatus();
}

absl::Status StagedColumns::PlaceRows(int64_t slot, int64_t segment, const Field& field,
                                      const CheckedFragment::Located& from, Column* column) {
  const int64_t rows = fragment_steps_ + (field.extent == Extent::kStepAndLast ? 1 : 0);
  const int64_t row_bytes = SlotBytes(field), stride = slots_ * row_bytes;
  char* to = column->bytes.data() + segment * fragment_steps_ * stride + slot * row_bytes;
  if (field.dtype == v1::DATA_TYPE_FLOAT32) {
    const auto width = static_cast<int64_t>(row_bytes / sizeof(float)),
               step = static_cast<int64_t>(stride / sizeof(float));
    float* const floats = reinterpret_cast<float*>(to);
    FloatReader reader(from.data, schema_.WireType(field) == v1::DATA_TYPE_BFLOAT16);
    const auto bad = static_cast<int64_t>(reader.ReadRows(rows, width, step, BoundOf(field), floats));
    if (bad == rows * width) return absl::OkStatus();
    return BeyondError(field, bad, floats[bad / width * step + bad % width]);
  }
  PieceReader data = from.data;
  const int64_t count = row_bytes / ElementSize(field.dtype);
  for (int64_t row = 0; row < rows; ++row, to += stride) {
    data.Read(to, row_bytes);
    if (absl::Status s = CheckValues(field, schema_.shape, to, count, row * count); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void StagedColumns::PlaceEnds(int64_t slot, int64_t segment, const CheckedFragment& fragment) {
  const int64_t E = group_envs_, A = num_agents_, stride = slots_ * E * A;
  if (Find("terminated") == nullptr) return;  // Not of steps.
  const int64_t first = segment * fragment_steps_ * stride + slot * E * A;
  uint8_t* const terminated = values<uint8_t>("terminated").data() + first;
  uint8_t* const truncated = values<uint8_t>("truncated").data() + first;
  const uint8_t* const cut = fragment.values<uint8_t>("truncated").data();
  const uint8_t* const ended = fragment.values<uint8_t>("terminated").data();
  if (uint8_t* const episodes = values<uint8_t>("ended").data(); episodes != nullptr) {
    for (int64_t t = 0; t < fragment_steps_; ++t) {
      uint8_t* const row = episodes + (segment * fragment_steps_ + t) * slots_ * E + slot * E;
      for (int64_t e = 0; e < E; ++e) row[e] = ended[t * E + e] != 0 || cut[t * E + e] != 0 ? 1 : 0;
    }
  }
  if (A == 1) {
    for (int64_t t = 0; t < fragment_steps_; ++t) {
      std::memcpy(terminated + t * stride, ended + t * E, E);
      std::memcpy(truncated + t * stride, cut + t * E, E);
    }
    return;
  }
  const uint8_t* const active = fragment.values<uint8_t>("active").data();
  const uint8_t* const agent_ended = fragment.values<uint8_t>("agent_terminated").data();
  for (int64_t t = 0; t < fragment_steps_; ++t) {
    for (int64_t i = 0; i < E * A; ++i) {
      const int64_t agent = t * E * A + i;
      terminated[t * stride + i] = agent_ended[agent];
      truncated[t * stride + i] = cut[t * E + i / A] && active[agent] && !agent_ended[agent];
    }
  }
}

void StagedColumns::PlaceFirstState(int64_t slot, const v1::Tensor* state) {
  Column* const column = Find("first_policy_state");
  if (column == nullptr) return;
  const auto bytes = static_cast<size_t>(SlotBytes(column->field));
  char* const to = column->bytes.data() + static_cast<size_t>(slot) * bytes;
  if (state == nullptr || state->data().size() != bytes) {
    std::memset(to, 0, bytes);
  } else {
    std::memcpy(to, state->data().data(), bytes);
  }
}

// Row and column in the fragment of each row of final_obs: t * E * A + column.
void StagedColumns::PlaceFinalIndex(const CheckedFragment& fragment, std::vector<char>* index) const {
  const auto cut = fragment.values<uint8_t>("truncated");
  const int64_t A = num_agents_, ends = static_cast<int64_t>(cut.size());
  index->resize(fragment.counts.truncations * A * sizeof(int64_t));
  int64_t* to = reinterpret_cast<int64_t*>(index->data());
  for (int64_t i = 0; i < ends && fragment.counts.truncations > 0; ++i) {
    const void* const next = std::memchr(cut.data() + i, 1, ends - i);
    if (next == nullptr) return;
    i = static_cast<const uint8_t*>(next) - cut.data();
    for (int64_t a = 0; a < A; ++a) *to++ = i * A + a;
  }
}

void StagedColumns::Seal() {
  for (Column& column : columns_) {
    if (!HasPlaces(column.field)) column.bytes.clear();
  }
  const int64_t M = columns(), W = group_envs_ * num_agents_;
  for (size_t k = 0; k < kept_.size(); ++k) {
    for (int64_t segment = 0; segment < segments_; ++segment) {
      Varying& piece = varying_[kept_[k] * segments_ + segment];
      if (piece.empty()) continue;  // Nothing was placed.
      const int64_t first = segment * fragment_steps_ * M + static_cast<int64_t>(k) * W;
      for (size_t i = 0; i < columns_.size(); ++i) {
        std::vector<char>& bytes = columns_[i].bytes;
        const size_t before = bytes.size();
        if (HasPlaces(columns_[i].field)) continue;
        bytes.insert(bytes.end(), piece[i].begin(), piece[i].end());
        if (source_[i] >= 0) continue;
        int64_t* const index = reinterpret_cast<int64_t*>(bytes.data() + before);
        for (size_t j = 0; j < (bytes.size() - before) / sizeof(int64_t); ++j) {
          index[j] = first + index[j] / W * M + index[j] % W;
        }
      }
    }
  }
}

}  // namespace skein
