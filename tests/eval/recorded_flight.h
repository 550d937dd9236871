// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/evaluation_result.h"
#include "eval/recorded_episode.h"

namespace skein {

// Episode `episode` of a baseline and what all episodes up to it came to.
struct RecordedFlight {
  RecordedEpisode episode;
  EvaluationResult result;
};
RecordedFlight Fly(const std::string& env_id, const std::string& baseline, uint32_t episode,
                   const UavOptions& options = {});

}  // namespace skein
