// SPDX-License-Identifier: Apache-2.0
// Saving, loading, and the figures of an episode.
#include <algorithm>
#include <cmath>
#include <limits>

#include "env/uav/uav_world.h"

namespace skein {
namespace {

constexpr double kMaxWord = 4294967295.0;
// Metres, and their squares: more than any episode can have, and figures made of it are within kEpisodeBound.
constexpr double kMaxMetres = 1e9;

}  // namespace

void UavWorld::SaveState(int env, double* state) const {
  state[0] = steps_[env];
  state[1] = double{separation_squared_[env]};
  const uint8_t* const occupied = occupied_.data() + size_t(env) * grid_size_;
  const uint8_t* const unvisited = unvisited_.data() + size_t(env) * grid_size_;
  for (int word = 0; word < layout_.words; ++word) {
    uint32_t obstacles = 0, visited = 0;
    for (int bit = 0; bit < kUavCellsInWord; ++bit) {
      const int cell = word * kUavCellsInWord + bit;
      if (cell >= layout_.cells) break;
      const int index = CellIndex(cell);
      obstacles |= uint32_t{occupied[index]} << bit;
      visited |= uint32_t{occupied[index] == 0 && unvisited[index] == 0} << bit;
    }
    state[layout_.saved_obstacles + word] = obstacles;
    state[layout_.saved_visited + word] = visited;
  }
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    double* const own = state + layout_.saved_uavs + n * layout_.saved_uav;
    own[0] = double{x_[uav]};
    own[1] = double{y_[uav]};
    own[2] = double{vx_[uav]};
    own[3] = double{vy_[uav]};
    own[4] = static_cast<double>(status_[uav]);
    own[5] = double{flown_[uav]};
    own[6] = start_[uav];
    own[7] = target_[uav];
  }
}

void UavWorld::LoadState(int env, const double* state) {
  const auto word = [](double value) { return static_cast<uint32_t>(std::clamp(value, 0.0, kMaxWord)); };
  const auto real = [](double value, double low, double high) {
    return static_cast<float>(std::clamp(value, low, high));
  };
  const double most = std::numeric_limits<float>::max();
  Clear(env);
  steps_[env] = static_cast<int>(std::clamp(state[0], 0.0, 1e9));
  separation_squared_[env] = real(state[1], 0, state[1] < most ? kMaxMetres : most);
  for (int cell = 0; cell < layout_.cells; ++cell) {
    const int at = cell / kUavCellsInWord, bit = cell % kUavCellsInWord;
    if ((word(state[layout_.saved_obstacles + at]) >> bit & 1) != 0) {
      PlaceObstacle(env, cell);
    } else if ((word(state[layout_.saved_visited + at]) >> bit & 1) != 0) {
      MarkVisited(env, CellIndex(cell));
    }
  }
  taking_part_[env] = 0;
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    const double* const own = state + layout_.saved_uavs + n * layout_.saved_uav;
    const auto cell = [this](double value) { return static_cast<int>(std::clamp(value, 0.0, layout_.cells - 1.0)); };
    x_[uav] = real(own[0], -1, size_ + 0.99);
    y_[uav] = real(own[1], -1, size_ + 0.99);
    vx_[uav] = real(own[2], -1, 1);
    vy_[uav] = real(own[3], -1, 1);
    status_[uav] = static_cast<UavStatus>(std::clamp(own[4], 0.0, 2.0));
    flown_[uav] = real(own[5], 0, kMaxMetres);
    start_[uav] = cell(own[6]);
    SetTarget(uav, cell(own[7]));
    if (status_[uav] == UavStatus::kTakesPart) ++taking_part_[env];
  }
}

float UavWorld::MeanPathRatio(int env) const {
  const uint8_t* const occupied = occupied_.data() + size_t(env) * grid_size_;
  float sum = 0;
  int counted = 0;
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    if (status_[uav] != UavStatus::kArrived) continue;
    const float shortest = shortest_path_.Length(occupied, stride_, CellIndex(start_[uav]), CellIndex(target_[uav]));
    if (!std::isfinite(shortest) || shortest == 0) continue;
    sum += flown_[uav] / shortest;
    ++counted;
  }
  return counted > 0 ? sum / static_cast<float>(counted) : 0;
}

void UavWorld::EpisodeMetrics(int env, float* metrics) const {
  const auto begin = status_.begin() + size_t(env) * uavs_, end = begin + uavs_;
  const float uavs = static_cast<float>(uavs_);
  const float arrived = static_cast<float>(std::count(begin, end, UavStatus::kArrived));
  const float crashed = static_cast<float>(std::count(begin, end, UavStatus::kCrashed));
  const float visited = static_cast<float>(free_[env] - left_to_visit_[env]);
  const float separation = separation_squared_[env];
  const bool navigate = task_ == UavTask::kNavigate;
  if (navigate) *metrics++ = arrived / uavs;
  *metrics++ = crashed / uavs;
  *metrics++ = visited / static_cast<float>(std::max(1, free_[env]));
  if (navigate) *metrics++ = MeanPathRatio(env);
  *metrics = separation < std::numeric_limits<float>::max() ? std::sqrt(separation) : 0;
}

}  // namespace skein
