// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

struct Colour {
  uint8_t red, green, blue;
};

// In pixels from the left upper corner; y points down.
struct Point {
  double x, y;
};

// Something to draw on, with a white ground. What is drawn later covers what was drawn before. `kind` says what a shape
// stands for, e.g. "trail": the class of its element in an SVG.
class Canvas {
 public:
  virtual ~Canvas() = default;
  // Filled squares; `corners` are the left upper ones.
  virtual void Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour) = 0;
  virtual void Disc(const char* kind, Point centre, double radius, Colour colour) = 0;
  virtual void Ring(const char* kind, Point centre, double radius, double width, Colour colour) = 0;
  // Lines with round ends; one of a single point is a dot.
  virtual void Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour) = 0;
  // `left` is the beginning of the baseline; `size` is the height of a line.
  virtual void Text(Point left, double size, Colour colour, const std::string& text) = 0;
};

}  // namespace skein
