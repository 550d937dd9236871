// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "learner/optimize/tensor_set.h"

namespace skein {

// One iteration's data in env-index order, time-major, raw observations: the staged columns as tensors, by the names
// that fields have on the wire.   staged columns -> Batch -> Algorithm::Update
// N environments, A agents, flattened to M = N * A columns, an environment's agents beside each other. Of several ranks
// each has some of the columns, by rank and maybe none; T is the same for all. On the CPU, or all of it on the device
// that it is trained on.
//   obs          float32 [T+1, M, O]
//   action       float32 [T, M, D], or int64 [T, M] if discrete
//   log_prob     float32 [T, M], of the behaviour policy
//   reward       float32 [T, M]; of an agent that took no part, for its last action before
//   terminated   bool [T, M], of the agent's part of the episode
//   truncated    bool [T, M]
//   active       bool [T, M], the agent took part: the others are no samples; undefined = all did
//   final_obs    float32 [K, O], true last observations of truncated episodes
//   final_index  int64 [K], position t * M + m of each, among these columns
//   state        float32 [T+1, N, G], for a central critic, as the next two; else not looked at
//   final_state  float32 [K / A, G]
//   final_value  float32 [T, M], in place of final_obs: V of the last observation where truncated, in the value net's
//                units
struct Batch : TensorSet {
  int64_t column_offset = 0;  // Of these columns among those of all ranks.
  int64_t total_columns = 0;  // Of all ranks; 0 = only these.
};

}  // namespace skein
