// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "env/vector_env.h"
#include "eval/episode_policy.h"
#include "eval/evaluation_result.h"
#include "eval/recorded_episode.h"

namespace skein {

// Told now and then: episodes that have ended, of how many, and env steps so far.
using EpisodeProgress = std::function<void(uint32_t ended, uint32_t episodes, int64_t env_steps)>;

// Where an environment has no limit, an episode that is longer is taken for one that never ends.
inline constexpr int64_t kEndlessSteps = 100000;

// Runs episodes 0 .. episodes - 1, many side by side, and writes returns, lengths and metrics of `result`: of those
// that failed (VectorEnv::StepResult::diverged) only their number. Ignores `options.size`. Records the states of
// episode `recording->episode` in `recording`, unless that is null. Calls `on_progress`, unless that is null, every 10
// s. InvalidArgument, Internal: as VectorEnv::Make. DataLoss: an episode does not end. Otherwise as VectorEnv::failure:
// an environment failed.
absl::Status RunEpisodes(EpisodePolicy& policy, const VectorEnv::Options& options, uint32_t episodes,
                         RecordedEpisode* recording, EvaluationResult* result, const EpisodeProgress& on_progress = {});

}  // namespace skein
