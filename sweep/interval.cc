// SPDX-License-Identifier: Apache-2.0
#include "sweep/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

// The 97.5 % quantile of Student's t, by degrees of freedom from 1 on; beyond, the normal distribution's is within 2 %
// of it, and the last one is above it.
constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

double Quantile(double degrees) {
  if (!(degrees >= 1)) return std::numeric_limits<double>::infinity();
  const size_t index = std::min(static_cast<size_t>(degrees), std::size(kQuantiles)) - 1;
  return kQuantiles[index];
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The squared standard error of the mean; infinite for fewer than two values.
double SquaredError(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  const double mean = Mean(values), n = static_cast<double>(values.size());
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return squares / (n - 1) / n;
}

}  // namespace

Interval MeanInterval(const std::vector<double>& values) {
  const double error = SquaredError(values);
  if (!std::isfinite(error)) return {Mean(values), error};
  return {Mean(values), Quantile(static_cast<double>(values.size()) - 1) * std::sqrt(error)};
}

Interval DifferenceInterval(const std::vector<double>& a, const std::vector<double>& b) {
  const double difference = Mean(a) - Mean(b), of_a = SquaredError(a), of_b = SquaredError(b), sum = of_a + of_b;
  if (!std::isfinite(sum)) return {difference, sum};
  if (sum == 0) return {difference, 0};
  const double degrees =
      sum * sum /
      (of_a * of_a / (static_cast<double>(a.size()) - 1) + of_b * of_b / (static_cast<double>(b.size()) - 1));
  return {difference, Quantile(degrees) * std::sqrt(sum)};
}

}  // namespace skein
