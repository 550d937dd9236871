// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "learner/collect/wire_batch.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/schema.h"

namespace skein {

// The bytes of a tensor that came compressed.
struct Decompressed {
  std::string bytes;
  Pieces pieces;
};

// The tensors of a checked batch. The large ones are still where they were received, or decompressed, and their values
// are not looked at yet: StagedBatch::Place does that while it copies them.
struct CheckedBatch {
  FloatReader obs;                                // float32 [T+1, E, A, O]
  PieceReader action;                             // float32 [T, E, A, D], or int64 [T, E, A, 1] if discrete
  PieceReader log_prob;                           // float32 [T, E, A]
  PieceReader reward;                             // float32 [T, E, A]
  FloatReader state;                              // float32 [T+1, E, G]; only if G > 0
  std::vector<uint8_t> terminated;                // [T, E]
  std::vector<uint8_t> truncated;                 // [T, E]
  std::vector<uint8_t> active, agent_terminated;  // [T, E, A]; empty if A = 1
  std::vector<float> final_obs;                   // [K, A, O], up to kNumberBound
  std::vector<float> final_state;                 // [K, G], up to kNumberBound
  std::vector<float> episode_metrics;             // [M, P], up to kEpisodeBound
  std::vector<float> episode_return;              // [M], up to kEpisodeBound
  std::vector<int64_t> episode_length;            // [M], that an episode can have
  v1::Tensor env_state;                           // float64 [E, S], finite
  uint64_t saved_bytes = 0;                       // That bfloat16 and compression made the message smaller by.
  std::vector<std::unique_ptr<Decompressed>> decompressed;  // What readers above read from.
};

// Checks names, dtypes, shapes, byte counts, flags that are 0 or 1 and do not contradict each other, one final
// observation per truncation, one return per finished episode, and that no number of the small tensors is beyond its
// bound (base/number/number_bounds.h); decompresses what is compressed. Allocates nothing from a declared size that
// `shape` does not ask for. Pure, thread-safe; `checked` reads from what `batch` was parsed from. InvalidArgument:
// "tensors.<name>: ..." with what it got and what it wants.
absl::Status CheckBatch(const WireBatch& batch, const FragmentShape& shape, CheckedBatch* checked);

// InvalidArgument "tensors.<name>: <what>".
absl::Status TensorError(const std::string& name, const std::string& what);
// The same of an element that FindBeyond has found: not finite, or larger in magnitude than `bound`.
absl::Status BeyondError(const std::string& name, size_t element, float value, float bound);

// FailedPrecondition naming the first field that differs, with both values, and the tensor that it belongs to.
absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want);

}  // namespace skein
