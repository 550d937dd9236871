// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/direction_returns.h"

#include <cmath>
#include <string>

namespace skein {

DirectionEpisodes ReadDirectionEpisodes(const Columns& batch, uint32_t episodes) {
  DirectionEpisodes read;
  for (const char* const sign : {"plus", "minus"}) {
    const auto returns = batch.values<double>(std::string("return_") + sign);
    const auto steps = batch.values<int64_t>(std::string("steps_") + sign);
    for (size_t i = 0; i < returns.size(); ++i) {
      read.env_steps += static_cast<uint64_t>(steps[i]);
      if (!std::isfinite(returns[i])) continue;
      read.episode_return.insert(read.episode_return.end(), episodes, returns[i] / episodes);
      read.episode_length.insert(read.episode_length.end(), episodes, steps[i] / episodes);
    }
  }
  return read;
}

}  // namespace skein
