// SPDX-License-Identifier: Apache-2.0
#include "eval/svg_canvas.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace skein {
namespace {

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Hex(Colour colour) { return absl::StrFormat("#%02x%02x%02x", colour.red, colour.green, colour.blue); }

// At most two decimals.
std::string Number(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string At(Point point) { return absl::StrCat(Number(point.x), " ", Number(point.y)); }

}  // namespace

SvgCanvas::SvgCanvas(int width, int height, const std::string& title) {
  absl::StrAppendFormat(&text_,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                        "role=\"img\">\n<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                        width, height, width, height, Escaped(title), width, height);
}

void SvgCanvas::Squares(const char* kind, const std::vector<Point>& corners, double side, Colour colour) {
  if (corners.empty()) return;
  std::string path;
  const std::string length = Number(side);
  for (const Point& corner : corners) {
    absl::StrAppend(&path, "M", At(corner), "h", length, "v", length, "h-", length, "z");
  }
  absl::StrAppendFormat(&text_, "<path class=\"%s\" d=\"%s\" fill=\"%s\"/>\n", kind, path, Hex(colour));
}

void SvgCanvas::Disc(const char* kind, Point centre, double radius, Colour colour) {
  absl::StrAppendFormat(&text_, "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\"/>\n", kind,
                        Number(centre.x), Number(centre.y), Number(radius), Hex(colour));
}

void SvgCanvas::Ring(const char* kind, Point centre, double radius, double width, Colour colour) {
  absl::StrAppendFormat(
      &text_, "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>\n",
      kind, Number(centre.x), Number(centre.y), Number(radius), Hex(colour), Number(width));
}

void SvgCanvas::Strokes(const char* kind, const std::vector<std::vector<Point>>& lines, double width, Colour colour) {
  std::string path;
  for (const std::vector<Point>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) absl::StrAppend(&path, i == 0 ? "M" : "L", At(line[i]));
    if (line.size() == 1) absl::StrAppend(&path, "L", At(line[0]));
  }
  absl::StrAppendFormat(&text_,
                        "<path class=\"%s\" d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" "
                        "stroke-linecap=\"round\" stroke-linejoin=\"round\"/>\n",
                        kind, path, Hex(colour), Number(width));
}

void SvgCanvas::Text(Point left, double size, Colour colour, const std::string& text) {
  absl::StrAppendFormat(&text_,
                        "<text x=\"%s\" y=\"%s\" font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"%s\" "
                        "fill=\"%s\">%s</text>\n",
                        Number(left.x), Number(left.y), Number(size), Hex(colour), Escaped(text));
}

std::string SvgCanvas::Document() const { return text_ + "</svg>\n"; }

}  // namespace skein
