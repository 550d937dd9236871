// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Selects the configurations that a scaling study measures.
namespace skein {

struct ScalingPoint {
  uint32_t runners = 1;
  uint32_t envs_per_runner = 1;

  uint32_t environments() const { return runners * envs_per_runner; }
  std::string name() const;  // "4x2": four runners of two environments.
  bool operator==(const ScalingPoint& other) const = default;
};

// "1,2,4" -> {1, 2, 4}. InvalidArgument, naming `flag`: empty, not a number from 1 to 4096, or a duplicate.
absl::StatusOr<std::vector<uint32_t>> ParseCounts(const std::string& text, const std::string& flag);

// The ten configurations of the study that this command repeats.
std::vector<ScalingPoint> StudyGrid();

// Each number of runners with each number of environments. 1x1, the reference for all others, is first.
std::vector<ScalingPoint> CrossGrid(const std::vector<uint32_t>& runners, const std::vector<uint32_t>& envs);

// The multiple of `environments` nearest to `steps`, at least `environments`.
uint64_t FittingSteps(uint64_t steps, uint32_t environments);

}  // namespace skein
