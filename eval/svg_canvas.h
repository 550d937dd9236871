// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Pictures as SVG text, for maps of UAV episodes.   shapes in pixels -> SvgCanvas -> document
namespace skein {

struct Colour {
  uint8_t red, green, blue;
};

// In pixels from the upper left corner; y points down.
struct Point {
  double x, y;
};

// Draws a self-contained SVG document on a white background. Later elements cover earlier ones. Each call makes one
// element; `kind` is its class and says what it represents, e.g. "trail".
class SvgCanvas {
 public:
  // `title`: text alternative to the picture, for accessibility.
  SvgCanvas(int width, int height, const std::string& title);

  // Filled squares; `corners` are their upper left corners.
  void Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour);
  void Disc(const char* kind, Point centre, double radius, Colour colour);
  void Ring(const char* kind, Point centre, double radius, double width, Colour colour);
  // Lines with round ends; a line of a single point is a dot.
  void Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour);
  // `left` is the start of the baseline; `size` is the line height.
  void Text(Point left, double size, Colour colour, const std::string& text);

  // The document so far.
  std::string Document() const;

 private:
  std::string text_;
};

}  // namespace skein
