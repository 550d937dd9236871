// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "eval/recorded_episode.h"

namespace skein {

// Whether RenderEpisode could draw an episode of `env_id` into `path`, as far as can be known before there is one.
// InvalidArgument: its name ends neither in .svg nor in .mp4, or no such picture of this environment exists.
// NotFound, PermissionDenied: its folder. Unavailable: a program or library is missing; says what to install.
absl::Status CheckRender(const std::string& path, const std::string& env_id);

// Draws a picture (.svg) or a film (.mp4) of UavNavigate-v0 or UavCover-v0, a film of a MuJoCo environment. The file is
// there as a whole or not at all. Errors as CheckRender, WriteFileAtomically, VideoWriter, OffscreenRenderer.
// REQUIRES: CheckRender said ok; the episode has states.
absl::Status RenderEpisode(const std::string& path, const RecordedEpisode& episode);

}  // namespace skein
