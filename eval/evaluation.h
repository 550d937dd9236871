// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "eval/evaluation_episodes.h"
#include "eval/evaluation_result.h"

// Evaluates a checkpoint deterministically, or a baseline to compare it with.
//   checkpoint -> Policy -> VectorEnv -> EvaluationResult
namespace skein {

// Exactly one of checkpoint and baseline is set.
struct EvaluationOptions {
  std::string checkpoint;  // A checkpoint's folder, or a run's or its checkpoints folder: the newest one there.
  uint32_t episodes = 10;
  uint64_t seed = 1;
  std::string baseline;                // "random" or "greedy", as MakeBaseline.
  std::string env_id;                  // For a baseline. With a checkpoint: must be its own, if set.
  std::vector<std::string> overrides;  // "env.a.b=value" or the limit of a step, for a checkpoint's.
  std::string render_path;             // File for one drawn episode, as RenderEpisode; empty = none.
  uint32_t render_episode = 0;
  bool unclipped_return = false;  // Also run the episodes with actions scored before they are clipped. MuJoCo only.
  EpisodeProgress on_progress;    // May be null.
};

// A checkpoint acts with its mean action (the most likely choice if discrete), in the environment that its
// configuration describes. Episode i depends only on (seed, i), except for rounding in inference batches of different
// sizes. Runs on the calling thread.
// NotFound: no checkpoint there. DataLoss: it is damaged, or its tensors do not fit its configuration; or all episodes
// failed, or one does not end (RunEpisodes). InvalidArgument:
// contradictory options, an unknown environment or baseline, bad settings. Others as CheckRender, before any episode is
// run, and RenderEpisode.
absl::StatusOr<EvaluationResult> Evaluate(const EvaluationOptions& options);

}  // namespace skein
