// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "eval/recorded_episode.h"

namespace skein {

// Checks whether RenderEpisode can draw an episode of `env_id` into `path`, as far as that is known before the episode.
// InvalidArgument: the name ends neither in .svg nor in .mp4, or there is no such picture of this environment.
// NotFound, PermissionDenied: its folder. Unavailable: a program or library is missing; says what to install.
absl::Status CheckRender(const std::string& path, const std::string& env_id);

// Draws an episode: a picture (.svg) or a film (.mp4) of UAVs, a film for MuJoCo environments. The file is written
// completely or not at all. Errors as CheckRender, WriteFileAtomically, VideoWriter, OffscreenRenderer. REQUIRES:
// CheckRender returned ok; the episode has states.
absl::Status RenderEpisode(const std::string& path, const RecordedEpisode& episode);

}  // namespace skein
