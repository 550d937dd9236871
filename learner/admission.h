// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// What every trajectory batch of this run must look like.
struct BatchShape {
  int64_t steps = 0;              // T
  int64_t num_envs = 0;           // E, environments in one block
  int64_t env_state_size = 0;     // S
  int64_t max_episode_steps = 0;  // 0 = no limit.
  v1::EnvSpecInfo spec;
};

// The tensors of a checked batch, read in place; valid as long as the message lives and does not change.
struct CheckedBatch {
  const float* obs = nullptr;               // [T+1, E, A, O]
  const float* action = nullptr;            // [T, E, A, D]; null if discrete
  const int64_t* action_index = nullptr;    // [T, E, A, 1]; null if continuous
  const float* log_prob = nullptr;          // [T, E, A]
  const float* reward = nullptr;            // [T, E, A]
  const uint8_t* terminated = nullptr;      // [T, E]
  const uint8_t* truncated = nullptr;       // [T, E]
  const float* final_obs = nullptr;         // [K, A, O]
  int64_t num_truncated = 0;                // K
  const float* episode_return = nullptr;    // [M]
  const int64_t* episode_length = nullptr;  // [M]
  int64_t num_episodes = 0;                 // M
  const v1::Tensor* env_state = nullptr;    // float64 [E, S]
};

// Checks everything the learner relies on: names, dtypes, shapes, byte counts, finiteness, flags that are 0 or 1 and
// never both, choices in range, one final observation per truncation, one return per finished episode. Allocates
// nothing from a declared size. Pure, thread-safe. InvalidArgument: "tensors.<name>: ..." with what it got and what it
// wants.
absl::Status CheckBatch(const v1::TrajectoryBatch& batch, const BatchShape& shape, CheckedBatch* checked);

// FailedPrecondition naming the first field that differs, with both values.
absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want);

}  // namespace skein
