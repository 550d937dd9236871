// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/render_canvas.h"

namespace skein {

// From the beginning of one letter to that of the next, in heights of a line.
inline constexpr double kGlyphAdvance = 0.62;

// Lines of a letter in heights of a line, from the beginning of its baseline; empty for those that are not known: all
// but ASCII's letters, digits and , . - : / ( ) %. Enough for captions without a font on the machine.
std::vector<std::vector<Point>> GlyphStrokes(char letter);

}  // namespace skein
