// SPDX-License-Identifier: Apache-2.0
#include "eval/render_raster.h"

#include <algorithm>
#include <cmath>

#include "eval/render_glyphs.h"

namespace skein {
namespace {

// How much of a pixel is within an edge that is `inside` pixels beyond its middle.
double Covered(double inside) { return std::clamp(inside + 0.5, 0.0, 1.0); }

// Pixel whose left or upper border `position` is at or after, within [0, end].
int PixelAt(double position, int end) { return static_cast<int>(std::clamp(std::floor(position), 0.0, double(end))); }

}  // namespace

RasterCanvas::RasterCanvas(int width, int height)
    : width_(width), height_(height), rgb_(size_t(width) * height * 3, 255) {}

template <typename Coverage>
void RasterCanvas::Fill(double left, double top, double right, double bottom, Colour colour, const Coverage& coverage) {
  const int first_x = PixelAt(left - 1, width_), last_x = PixelAt(right + 2, width_);
  const int first_y = PixelAt(top - 1, height_), last_y = PixelAt(bottom + 2, height_);
  const uint8_t channels[3] = {colour.red, colour.green, colour.blue};
  for (int y = first_y; y < last_y; ++y) {
    uint8_t* pixel = rgb_.data() + (size_t(y) * width_ + first_x) * 3;
    for (int x = first_x; x < last_x; ++x, pixel += 3) {
      const double share = coverage(x + 0.5, y + 0.5);
      if (share <= 0) continue;
      for (int c = 0; c < 3; ++c) {
        pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] + share * (channels[c] - pixel[c])));
      }
    }
  }
}

void RasterCanvas::Squares(const char*, const std::vector<Point>& corners, double side, Colour colour) {
  for (const Point& corner : corners) {
    const double half = side / 2, x = corner.x + half, y = corner.y + half;
    Fill(corner.x, corner.y, corner.x + side, corner.y + side, colour,
         [&](double px, double py) { return Covered(half - std::abs(px - x)) * Covered(half - std::abs(py - y)); });
  }
}

void RasterCanvas::Disc(const char*, Point centre, double radius, Colour colour) {
  Fill(centre.x - radius, centre.y - radius, centre.x + radius, centre.y + radius, colour,
       [&](double x, double y) { return Covered(radius - std::hypot(x - centre.x, y - centre.y)); });
}

void RasterCanvas::Ring(const char*, Point centre, double radius, double width, Colour colour) {
  const double reach = radius + width / 2;
  Fill(centre.x - reach, centre.y - reach, centre.x + reach, centre.y + reach, colour, [&](double x, double y) {
    return Covered(width / 2 - std::abs(std::hypot(x - centre.x, y - centre.y) - radius));
  });
}

void RasterCanvas::Segment(Point from, Point to, double width, Colour colour) {
  const double dx = to.x - from.x, dy = to.y - from.y, half = width / 2;
  const double length_squared = dx * dx + dy * dy;
  Fill(std::min(from.x, to.x) - half, std::min(from.y, to.y) - half, std::max(from.x, to.x) + half,
       std::max(from.y, to.y) + half, colour, [&](double x, double y) {
         const double along = (x - from.x) * dx + (y - from.y) * dy;
         const double t = length_squared > 0 ? std::clamp(along / length_squared, 0.0, 1.0) : 0;
         return Covered(half - std::hypot(x - from.x - t * dx, y - from.y - t * dy));
       });
}

void RasterCanvas::Strokes(const char*, const std::vector<std::vector<Point>>& lines, double width, Colour colour) {
  for (const std::vector<Point>& line : lines) {
    if (line.size() == 1) Segment(line[0], line[0], width, colour);
    for (size_t i = 1; i < line.size(); ++i) Segment(line[i - 1], line[i], width, colour);
  }
}

void RasterCanvas::Text(Point left, double size, Colour colour, const std::string& text) {
  for (const char letter : text) {
    std::vector<std::vector<Point>> lines = GlyphStrokes(letter);
    for (std::vector<Point>& line : lines) {
      for (Point& point : line) point = {left.x + size * point.x, left.y + size * point.y};
    }
    Strokes("", lines, size * 0.1, colour);
    left.x += size * kGlyphAdvance;
  }
}

}  // namespace skein
