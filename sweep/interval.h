// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace skein {

// A mean with its 95 % confidence interval, mean - half to mean + half. Fewer than two values: half is infinite.
struct Interval {
  double mean = 0, half = 0;
};

// Student's t (of n - 1 degrees of freedom).
Interval MeanInterval(const std::vector<double>& values);

// Of the difference of the means of a and b: Welch's t, its degrees of freedom rounded down.
Interval DifferenceInterval(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace skein
