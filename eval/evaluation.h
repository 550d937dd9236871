// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "eval/evaluation_result.h"

// Deterministic evaluation of a checkpoint, or of a baseline to compare it with.
//   checkpoint -> Policy -> VectorEnv -> EvaluationResult
namespace skein {

// Exactly one of checkpoint and baseline is set.
struct EvaluationOptions {
  std::string checkpoint;  // A checkpoint's folder, or a run's or its checkpoints folder: the newest one there.
  uint32_t episodes = 10;
  uint64_t seed = 1;
  std::string baseline;                // "random" or "greedy", as MakeBaseline.
  std::string env_id;                  // Of a baseline; a checkpoint knows its own, and may be held to it.
  std::vector<std::string> overrides;  // Of a baseline, "env.a.b=value".
  std::string render_path;             // Empty, or where one episode is drawn, as RenderEpisode.
  uint32_t render_episode = 0;
};

// A checkpoint acts with its mean action (the likeliest choice if discrete), in the environment that its configuration
// describes. Episode i depends on (seed, i) only, up to the rounding of differently sized inference batches. Works
// on the calling thread.
// NotFound: no checkpoint there. DataLoss: it is damaged, or its tensors do not fit its configuration.
// InvalidArgument: options that contradict each other, an unknown environment or baseline, bad settings. Otherwise as
// CheckRender, before any episode is run, and RenderEpisode.
absl::StatusOr<EvaluationResult> Evaluate(const EvaluationOptions& options);

}  // namespace skein
