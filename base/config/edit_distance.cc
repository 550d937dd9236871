// SPDX-License-Identifier: Apache-2.0
#include "base/config/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace skein {

int EditDistance(const std::string& from, const std::string& to) {
  // From the first i letters of `from` to each beginning of `to`; and from i - 1 and i - 2 letters.
  std::vector<int> row(to.size() + 1), above(row.size()), second_above(row.size());
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= from.size(); ++i) {
    second_above.swap(above);
    above.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const int substituted = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({substituted, row[j - 1] + 1, above[j] + 1});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], second_above[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace skein
