// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_grid.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

constexpr uint32_t kMaxCount = 4096;

}  // namespace

std::string ScalingPoint::name() const { return absl::StrCat(runners, "x", envs_per_runner); }

absl::StatusOr<std::vector<uint32_t>> ParseCounts(const std::string& text, const std::string& flag) {
  std::vector<uint32_t> counts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(word, &count) || count < 1 || count > kMaxCount) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": got ", Quoted(word), ", want numbers from 1 to ",
                                                     kMaxCount, " with commas between them"));
    }
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": ", count, " stands there twice"));
    }
    counts.push_back(count);
  }
  return counts;
}

std::vector<ScalingPoint> StudyGrid() {
  return {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {4, 2}, {8, 2}};
}

std::vector<ScalingPoint> CrossGrid(const std::vector<uint32_t>& runners, const std::vector<uint32_t>& envs) {
  std::vector<ScalingPoint> grid = {{1, 1}};
  for (const uint32_t e : envs) {
    for (const uint32_t r : runners) {
      if (r != 1 || e != 1) grid.push_back({r, e});
    }
  }
  return grid;
}

uint64_t FittingSteps(uint64_t steps, uint32_t environments) {
  const uint64_t each = (steps + environments / 2) / environments;
  return std::max<uint64_t>(each, 1) * environments;
}

}  // namespace skein
