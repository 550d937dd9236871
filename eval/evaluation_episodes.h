// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "env/vector_env.h"
#include "eval/episode_policy.h"
#include "eval/evaluation_result.h"
#include "eval/recorded_episode.h"

namespace skein {

// Runs episodes 0 .. episodes - 1, many side by side, and writes returns, lengths and metrics of `result`: of those
// that failed (VectorEnv::StepResult::diverged) only their number. Ignores `options.size`. Records the states of
// episode `recording->episode` in `recording`, unless that is null. InvalidArgument, Internal: as VectorEnv::Make.
// Otherwise as VectorEnv::failure: an environment failed.
absl::Status RunEpisodes(EpisodePolicy& policy, const VectorEnv::Options& options, uint32_t episodes,
                         RecordedEpisode* recording, EvaluationResult* result);

}  // namespace skein
