// SPDX-License-Identifier: Apache-2.0
#include "base/config/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace skein {

int EditDistance(const std::string& from, const std::string& to) {
  // From the first i + 1 letters of `from` to each beginning of `to`, from the first i, and from the first i - 1.
  std::vector<int> row(to.size() + 1), before(to.size() + 1), two_before;
  std::iota(before.begin(), before.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      row[j + 1] = std::min({before[j] + (from[i] == to[j] ? 0 : 1), row[j] + 1, before[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], two_before[j - 1] + 1);
    }
    two_before = std::exchange(before, row);
  }
  return before.back();
}

}  // namespace skein
