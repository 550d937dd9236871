// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/recorded_episode.h"
#include "eval/svg_canvas.h"

// Draws episodes of the UAV environments as pictures for a film.
namespace skein {

// Size in pixels of the picture of an episode of UavNavigate-v0 or UavCover-v0. Both numbers are even.
struct UavPictureSize {
  int width, height;
};
UavPictureSize SizeOfUavPicture(const RecordedEpisode& episode);

// The caption for the episode up to `step`, e.g. "step 74, success 0.90, collisions 0.10, coverage 0.31".
std::string UavCaption(const RecordedEpisode& episode, size_t step);

// Draws the arena and the course of the episode up to `step`, an index into its states. Elements by kind: "trail",
// "start" and, in UavNavigate, "target" for each UAV in its own colour; "crash" for each UAV that crashed, "arrival"
// for each that arrived, "uav" for each still flying; "obstacle"; in UavCover "visited".
void DrawUavs(const RecordedEpisode& episode, size_t step, SvgCanvas& canvas);

}  // namespace skein
