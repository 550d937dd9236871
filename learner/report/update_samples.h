// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace skein {

// Some of the samples that an update was given, for histograms.
struct UpdateSamples {
  std::vector<float> action;  // [samples, action_size], or the choices if discrete
  int64_t action_size = 1;
  bool discrete = false;
  // [samples] each, by name: what the algorithm says of them.
  std::vector<std::pair<std::string, std::vector<float>>> stats;
};

}  // namespace skein
