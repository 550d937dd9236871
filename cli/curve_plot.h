// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

// Plots curves as text, for `skein runs plot`.
namespace skein {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), x rising.
};

// Curves as text of `width` columns and `height` lines of plot, with axes and a line for each name. Where a column has
// several points of a curve it shows their mean. Letters a, b, c, ... mark curves; a later one covers an earlier one.
// REQUIRES: each curve has a point, there are at most 26, width >= 40, height >= 4.
std::string PlotCurves(const std::vector<Curve>& curves, const std::string& x_title, int width, int height);

}  // namespace skein
