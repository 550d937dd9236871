// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "learner/optimize/tensor_set.h"

namespace skein {

// One iteration's data: the staged columns as tensors, in env-index order, time-major, with raw observations. Tensor
// names are the field names on the wire.   staged columns -> Batch -> Algorithm::Update
// N environments with A agents make M = N * A columns; the agents of one environment are adjacent. Each rank has a
// contiguous range of columns, possibly none, in rank order; T is the same for all ranks. All tensors are on the CPU,
// or all are on the training device.
//   obs          float32 [T+1, M, O]
//   action       float32 [T, M, D], or int64 [T, M] if discrete
//   log_prob     float32 [T, M], of the behaviour policy; undefined unless the algorithm reads it
//   reward       float32 [T, M]; where the agent is not active, it belongs to the agent's last action before
//   terminated   bool [T, M], end of the agent's part of the episode
//   truncated    bool [T, M]
//   active       bool [T, M], the alive mask: rows that are 0 are not samples; undefined = all 1
//   final_obs    float32 [K, O], true last observations of truncated episodes
//   final_index  int64 [K], position t * M + m of each, among these columns
//   state        float32 [T+1, N, G], only read by a central critic; so is final_state
//   final_state  float32 [K / A, G]
//   final_value  float32 [T, M], in place of final_obs: V of the last observation where truncated, in the value net's
//                units
//   ended, first_policy_state   with a memory, as in trajectory/columns.h
// The batch of a search over directions has its fields instead (trajectory/schema.cc).
struct Batch : TensorSet {
  int64_t column_offset = 0;  // Run-wide index of this rank's first column.
  int64_t total_columns = 0;  // Columns of all ranks; 0 = this batch has all of them.
};

// Columns [offset, offset + columns) of a batch, as a rank that has only these has them. A copy. REQUIRES: they are
// those of whole environments, where a field has environments.
Batch ColumnsOf(const Batch& batch, int64_t offset, int64_t columns);

}  // namespace skein
