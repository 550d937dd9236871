// SPDX-License-Identifier: Apache-2.0
#include "cli/curve_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace skein {
namespace {

constexpr int kLabel = 11;  // Columns of a number beside the plot, and of the axis.

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Where `value` is, in [0, cells - 1].
  int Cell(double value, int cells) const {
    if (!(high > low)) return cells / 2;
    return std::clamp(static_cast<int>(std::lround((value - low) / (high - low) * (cells - 1))), 0, cells - 1);
  }
};

// The mean of a curve's points in each column; NaN where it has none.
std::vector<double> Columns(const Curve& curve, const Range& x, int columns) {
  std::vector<double> sum(columns), count(columns);
  for (const auto& [at, value] : curve.points) {
    const int column = x.Cell(at, columns);
    sum[column] += value;
    ++count[column];
  }
  for (int column = 0; column < columns; ++column) sum[column] /= count[column];  // 0 / 0 = NaN.
  return sum;
}

}  // namespace

std::string PlotCurves(const std::vector<Curve>& curves, const std::string& x_title, int width, int height) {
  const int columns = width - kLabel;
  Range x, y;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) x.Add(point.first);
  }
  std::vector<std::vector<double>> means;
  for (const Curve& curve : curves) {
    means.push_back(Columns(curve, x, columns));
    for (const double value : means.back()) {
      if (!std::isnan(value)) y.Add(value);
    }
  }
  std::vector<std::string> rows(height, std::string(columns, ' '));
  for (size_t i = 0; i < curves.size(); ++i) {
    for (int column = 0; column < columns; ++column) {
      if (std::isnan(means[i][column])) continue;
      rows[height - 1 - y.Cell(means[i][column], height)][column] = static_cast<char>('a' + i);
    }
  }
  std::string text;
  for (int row = 0; row < height; ++row) {
    const bool labelled = row == 0 || row == height - 1 || row == height / 2;
    const double value = y.high - (y.high - y.low) * row / (height - 1);
    const std::string label = labelled ? absl::StrFormat("%9.4g |", value) : absl::StrFormat("%9s |", "");
    std::string& cells = rows[row];
    cells.erase(cells.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, label, cells, "\n");
  }
  const std::string last = absl::StrFormat("%.4g %s", x.high, x_title), first = absl::StrFormat("%.4g", x.low);
  const int gap = std::max(1, columns - static_cast<int>(first.size() + last.size()));
  absl::StrAppend(&text, std::string(kLabel - 1, ' '), "+", std::string(columns, '-'), "\n", std::string(kLabel, ' '),
                  first, std::string(gap, ' '), last, "\n");
  for (size_t i = 0; i < curves.size(); ++i) {
    absl::StrAppend(&text, std::string(1, static_cast<char>('a' + i)), "  ", curves[i].name,
                    absl::StrFormat("  (last %.4g)\n", curves[i].points.back().second));
  }
  return text;
}

}  // namespace skein
