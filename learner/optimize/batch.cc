// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/batch.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

namespace skein {

Batch ColumnsOf(const Batch& batch, int64_t offset, int64_t columns) {
  const torch::NoGradGuard no_grad;
  const int64_t all = batch["reward"].size(1), divisor = std::max<int64_t>(all, 1);
  // Columns of each entry of a dimension of size `size`: 1, or an environment's.
  const auto each = [all](int64_t size) { return size > 0 ? all / size : 1; };
  Batch part;
  part.column_offset = batch.column_offset + offset;
  part.total_columns = batch.total_columns > 0 ? batch.total_columns : all;
  for (const auto& [name, values] : batch.tensors()) {
    if (!values.defined() || name == "final_obs" || name == "final_index" || name == "final_state") continue;
    const int64_t dimension = name == "first_policy_state" ? 0 : 1, agents = each(values.size(dimension));
    part[name] = values.narrow(dimension, offset / agents, columns / agents).contiguous();
  }
  if (!batch.has("final_index")) return part;
  const torch::Tensor& index = batch["final_index"];
  const torch::Tensor column = index.remainder(divisor) - offset;
  const torch::Tensor mine = (column >= 0).logical_and(column < columns).nonzero().view({-1});
  part["final_obs"] = batch["final_obs"].index_select(0, mine);
  part["final_index"] = (index.floor_divide(divisor) * columns + column).index_select(0, mine);
  if (batch.has("final_state")) {
    const int64_t agents = each(batch["state"].size(1));
    // The first of each environment's rows.
    part["final_state"] =
        batch["final_state"].index_select(0, mine.masked_select(mine.remainder(agents) == 0).floor_divide(agents));
  }
  return part;
}

}  // namespace skein
