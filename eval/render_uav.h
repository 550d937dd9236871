// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/recorded_episode.h"
#include "eval/svg_canvas.h"

namespace skein {

// The picture of an episode of UavNavigate-v0 or UavCover-v0, even so many pixels wide and high.
struct UavPictureSize {
  int width, height;
};
UavPictureSize SizeOfUavPicture(const RecordedEpisode& episode);

// The caption's words about the episode up to `step`, e.g. "step 74, success 0.90, collisions 0.10, coverage 0.31".
std::string UavCaption(const RecordedEpisode& episode, size_t step);

// Draws the arena and what has happened up to `step`, an index into the episode's states: a "trail", a "start" and, in
// UavNavigate, a "target" for each UAV in its own colour; a "crash" for each that crashed, an "arrival" for each that
// arrived, a "uav" for each that still flies; "obstacle"; in UavCover what was "visited".
void DrawUavs(const RecordedEpisode& episode, size_t step, SvgCanvas& canvas);

}  // namespace skein
