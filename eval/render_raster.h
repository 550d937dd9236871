// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/render_canvas.h"

namespace skein {

// Draws pixels, with smooth edges: a shape covers a pixel by how far its middle is within. What lies outside of the
// picture is left out.
class RasterCanvas : public Canvas {
 public:
  RasterCanvas(int width, int height);

  void Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour) override;
  void Disc(const char* kind, Point centre, double radius, Colour colour) override;
  void Ring(const char* kind, Point centre, double radius, double width, Colour colour) override;
  void Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour) override;
  // Letters as GlyphStrokes has them.
  void Text(Point left, double size, Colour colour, const std::string& text) override;

  const std::vector<uint8_t>& rgb() const { return rgb_; }  // [height, width, 3]

 private:
  // Blends `colour` into the pixels of the box by coverage(x, y) of their middles.
  template <typename Coverage>
  void Fill(double left, double top, double right, double bottom, Colour colour, const Coverage& coverage);
  void Segment(Point from, Point to, double width, Colour colour);

  const int width_, height_;
  std::vector<uint8_t> rgb_;
};

}  // namespace skein
