// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trajectory/columns.h"

namespace skein {

// Statistics, for reports, of the episodes that an iteration's directions played: each counts as the mean of its
// direction and sign.
struct DirectionEpisodes {
  uint64_t env_steps = 0;
  std::vector<double> episode_return;  // Those that are finite, one for each episode.
  std::vector<int64_t> episode_length;
};
// `batch`: sealed columns of directions. `episodes`: for each direction and sign.
DirectionEpisodes ReadDirectionEpisodes(const Columns& batch, uint32_t episodes);

}  // namespace skein
