// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

// The last episodes of a run, oldest first, of which reports give the means. A checkpoint keeps them: a run that goes
// on reports what it would have reported without a stop.
struct EpisodeWindow {
  static constexpr uint64_t kEpisodes = 100;  // At most.

  std::vector<double> returns;   // [episodes]
  std::vector<int64_t> lengths;  // [episodes], in steps
  std::vector<float> metrics;    // [episodes, P]; NaN is unknown
};

}  // namespace skein
