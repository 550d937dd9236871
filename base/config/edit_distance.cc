// SPDX-License-Identifier: Apache-2.0
#include "base/config/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace skein {

int EditDistance(const std::string& from, const std::string& to) {
  std::vector<int> row(to.size() + 1);  // From the first i letters of `from` to each beginning of `to`.
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const int substituted = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace skein
