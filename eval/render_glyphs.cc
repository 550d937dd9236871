// SPDX-License-Identifier: Apache-2.0
#include "eval/render_glyphs.h"

namespace skein {
namespace {

// A grid of 4 by 8 squares: each point is a digit for x and a letter for y, where c is the baseline, g the height of
// an x, i that of a capital, a the lowest; blanks separate lines.
constexpr double kGridSize = 0.115;

struct Glyph {
  char letter;
  const char* lines;
};

constexpr Glyph kGlyphs[] = {
    {'0', "1c0d0h1i3i4h4d3c1c"},
    {'1', "0g2i2c 0c4c"},
    {'2', "0h1i3i4h4g0c4c"},
    {'3', "0h1i3i4h4g3f4e4d3c1c0d 1f3f"},
    {'4', "3c3i0e4e"},
    {'5', "4i0i0f3f4e4d3c0c"},
    {'6', "4h3i1i0h0d1c3c4d4e3f0f"},
    {'7', "0i4i1c"},
    {'8', "1f0g0h1i3i4h4g3f1f0e0d1c3c4d4e3f"},
    {'9', "0d1c3c4d4h3i1i0h0g1f4f"},
    {'A', "0c2i4c 1e3e"},
    {'B', "0c0i3i4h4g3f0f 3f4e4d3c0c"},
    {'C', "4h3i1i0h0d1c3c4d"},
    {'D', "0c0i2i4g4e2c0c"},
    {'E', "4i0i0c4c 0f3f"},
    {'F', "4i0i0c 0f3f"},
    {'G', "4h3i1i0h0d1c3c4d4f2f"},
    {'H', "0c0i 4c4i 0f4f"},
    {'I', "1i3i 2i2c 1c3c"},
    {'J', "3i3d2c1c0d"},
    {'K', "0c0i 4i0f4c"},
    {'L', "0i0c4c"},
    {'M', "0c0i2f4i4c"},
    {'N', "0c0i4c4i"},
    {'O', "1c0d0h1i3i4h4d3c1c"},
    {'P', "0c0i3i4h4g3f0f"},
    {'Q', "1c0d0h1i3i4h4d3c1c 3e4c"},
    {'R', "0c0i3i4h4g3f0f 2f4c"},
    {'S', "4h3i1i0h0g1f3f4e4d3c1c0d"},
    {'T', "0i4i 2i2c"},
    {'U', "0i0d1c3c4d4i"},
    {'V', "0i2c4i"},
    {'W', "0i1c2g3c4i"},
    {'X', "0i4c 0c4i"},
    {'Y', "0i2f4i 2f2c"},
    {'Z', "0i4i0c4c"},
    {'a', "0f1g3g4f4c 4e1e0d1c3c4d"},
    {'b', "0i0c 0f1g3g4f4d3c1c0d"},
    {'c', "4f3g1g0f0d1c3c4d"},
    {'d', "4i4c 4f3g1g0f0d1c3c4d"},
    {'e', "0e4e4f3g1g0f0d1c3c4d"},
    {'f', "4i3i2h2c 1g4g"},
    {'g', "4g4b3a1a0b 4f3g1g0f0d1c3c4d"},
    {'h', "0i0c 0f1g3g4f4c"},
    {'i', "1g2g2c 1c3c 2i2i"},
    {'j', "2g3g3b2a1a 3i3i"},
    {'k', "0i0c 4g0e4c"},
    {'l', "1i2i2c 1c3c"},
    {'m', "0c0g 0f1g2f2c 2f3g4f4c"},
    {'n', "0g0c 0f1g3g4f4c"},
    {'o', "1c0d0f1g3g4f4d3c1c"},
    {'p', "0g0a 0f1g3g4f4d3c1c0d"},
    {'q', "4g4a 4f3g1g0f0d1c3c4d"},
    {'r', "0g0c 0e2g3g4f"},
    {'s', "4f3g1g0f1e3e4d3c1c0d"},
    {'t', "2h2d3c4d 0g4g"},
    {'u', "0g0d1c3c4d 4g4c"},
    {'v', "0g2c4g"},
    {'w', "0g1c2f3c4g"},
    {'x', "0g4c 0c4g"},
    {'y', "0g2c 4g1a0a"},
    {'z', "0g4g0c4c"},
    {',', "2d1b"},
    {'.', "2c2c"},
    {':', "2c2c 2f2f"},
    {'-', "0f4f"},
    {'/', "0c4i"},
    {'(', "3i2h2d3c"},
    {')', "1i2h2d1c"},
    {'%', "0c4i 0h1i1h0h 3d4d3c3d"},
};

}  // namespace

std::vector<std::vector<Point>> GlyphStrokes(char letter) {
  std::vector<std::vector<Point>> lines;
  for (const Glyph& glyph : kGlyphs) {
    if (glyph.letter != letter) continue;
    lines.emplace_back();
    for (const char* at = glyph.lines; *at != '\0'; ++at) {
      if (*at == ' ') {
        lines.emplace_back();
        continue;
      }
      const double x = *at - '0';
      const double y = *++at - 'c';
      lines.back().push_back({x * kGridSize, -y * kGridSize});
    }
  }
  return lines;
}

}  // namespace skein
