// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/render_canvas.h"

namespace skein {

// Draws a document that needs nothing else: one element for each call, with its kind as class.
class SvgCanvas : public Canvas {
 public:
  // `title` is for those who cannot see the picture.
  SvgCanvas(int width, int height, const std::string& title);

  void Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour) override;
  void Disc(const char* kind, Point centre, double radius, Colour colour) override;
  void Ring(const char* kind, Point centre, double radius, double width, Colour colour) override;
  void Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour) override;
  void Text(Point left, double size, Colour colour, const std::string& text) override;

  // The document so far.
  std::string Document() const;

 private:
  std::string text_;
};

}  // namespace skein
