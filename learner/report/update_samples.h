// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace skein {

// Some of an update's input samples, for histograms.
struct UpdateSamples {
  std::vector<float> action;  // [samples, action_size], or the choices if discrete
  int64_t action_size = 1;
  bool discrete = false;
  // The algorithm's values for each sample, by name: [samples] each.
  std::vector<std::pair<std::string, std::vector<float>>> stats;
};

}  // namespace skein
