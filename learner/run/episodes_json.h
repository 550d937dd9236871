// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "learner/report/episode_window.h"

// The last episodes of a run in the manifest of a checkpoint: {"returns", "lengths", "metrics"}, null for NaN.
namespace skein {

nlohmann::json EpisodesToJson(const EpisodeWindow& window);
// Of a manifest; empty if it is of before they were kept. Throws nlohmann::json::exception: they are not what they
// should be.
EpisodeWindow EpisodesOfManifest(const nlohmann::json& manifest);

}  // namespace skein
