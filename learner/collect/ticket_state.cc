// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/ticket_state.h"

#include <cstddef>

namespace skein {
namespace {

using Field = std::optional<v1::Tensor> TicketState::*;
constexpr Field kFields[] = {&TicketState::env_state, &TicketState::policy_state};

v1::Tensor RowsOf(const v1::Tensor& all, uint32_t first, uint32_t count) {
  const size_t row_bytes = all.data().size() / static_cast<size_t>(all.shape(0));
  v1::Tensor part;
  part.set_name(all.name());
  part.set_dtype(all.dtype());
  *part.mutable_shape() = all.shape();
  part.set_shape(0, count);
  part.set_data(all.data().substr(first * row_bytes, count * row_bytes));
  return part;
}

std::optional<v1::Tensor> JoinField(const std::vector<const TicketState*>& parts, Field field) {
  std::optional<v1::Tensor> all;
  for (const TicketState* part : parts) {
    const std::optional<v1::Tensor>& rows = part->*field;
    if (!rows) return std::nullopt;
    if (!all) {
      all = rows;
      continue;
    }
    all->set_shape(0, all->shape(0) + rows->shape(0));
    all->mutable_data()->append(rows->data());
  }
  return all;
}

}  // namespace

TicketState Rows(const TicketState& all, uint32_t first, uint32_t count) {
  TicketState rows;
  for (const Field field : kFields) {
    if (all.*field) rows.*field = RowsOf(*(all.*field), first, count);
  }
  return rows;
}

TicketState Join(const std::vector<const TicketState*>& parts) {
  TicketState all;
  for (const Field field : kFields) all.*field = JoinField(parts, field);
  return all;
}

}  // namespace skein
