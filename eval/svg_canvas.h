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

// Draws an SVG document that needs nothing else, on a white ground. What is drawn later covers what was drawn before.
// Each call makes one element; `kind` says what it stands for, e.g. "trail", and is its class.
class SvgCanvas {
 public:
  // `title` is for those who cannot see the picture.
  SvgCanvas(int width, int height, const std::string& title);

  // Filled squares; `corners` are the left upper ones.
  void Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour);
  void Disc(const char* kind, Point centre, double radius, Colour colour);
  void Ring(const char* kind, Point centre, double radius, double width, Colour colour);
  // Lines with round ends; one of a single point is a dot.
  void Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour);
  // `left` is the beginning of the baseline; `size` is the height of a line.
  void Text(Point left, double size, Colour colour, const std::string& text);

  // The document so far.
  std::string Document() const;

 private:
  std::string text_;
};

}  // namespace skein
