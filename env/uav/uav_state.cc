// SPDX-License-Identifier: Apache-2.0
// Saving, loading, and the metrics of an episode.
#include <algorithm>
#include <cmath>
#include <limits>

#include "env/uav/uav_world.h"

namespace skein {
namespace {

constexpr double kMaxWord = 4294967295.0;
// Metres, and their squares: more than any episode can have, and metrics made of it are within kEpisodeBound.
constexpr double kMaxMetres = 1e9;

}  // namespace

void UavWorld::SaveState(int env, double* state) const {
  state[0] = steps_[env];
  state[1] = double{separation_squared_[env]};
  const uint8_t* const occupied = grid_.occupied(env);
  const uint8_t* const unvisited = grid_.unvisited(env);
  for (int word = 0; word < layout_.words; ++word) {
    uint32_t obstacles = 0, visited = 0;
    for (int bit = 0; bit < kUavCellsInWord; ++bit) {
      const int cell = word * kUavCellsInWord + bit;
      if (cell >= layout_.cells) break;
      const int index = grid_.CellIndex(cell);
      obstacles |= uint32_t{occupied[index]} << bit;
      visited |= uint32_t{occupied[index] == 0 && unvisited[index] == 0} << bit;
    }
    state[layout_.saved_obstacles + word] = obstacles;
    state[layout_.saved_visited + word] = visited;
  }
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    double* const own = state + layout_.saved_uavs + n * kUavSavedDoubles;
    own[0] = double{all_.x[uav]};
    own[1] = double{all_.y[uav]};
    own[2] = double{all_.vx[uav]};
    own[3] = double{all_.vy[uav]};
    own[4] = static_cast<double>(all_.status[uav]);
    own[5] = double{all_.flown[uav]};
    own[6] = all_.start[uav];
    own[7] = all_.target[uav];
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
      grid_.PlaceObstacle(env, cell);
    } else if ((word(state[layout_.saved_visited + at]) >> bit & 1) != 0) {
      grid_.MarkVisited(env, grid_.CellIndex(cell));
    }
  }
  alive_[env] = 0;
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    const double* const own = state + layout_.saved_uavs + n * kUavSavedDoubles;
    const auto cell = [this](double value) { return static_cast<int>(std::clamp(value, 0.0, layout_.cells - 1.0)); };
    all_.x[uav] = real(own[0], -1, size_ + 0.99);
    all_.y[uav] = real(own[1], -1, size_ + 0.99);
    all_.vx[uav] = real(own[2], -1, 1);
    all_.vy[uav] = real(own[3], -1, 1);
    all_.status[uav] = static_cast<UavStatus>(std::clamp(own[4], 0.0, 2.0));
    all_.flown[uav] = real(own[5], 0, kMaxMetres);
    all_.start[uav] = cell(own[6]);
    SetTarget(uav, cell(own[7]));
    if (all_.status[uav] == UavStatus::kAlive) ++alive_[env];
  }
}

float UavWorld::MeanPathRatio(int env) const {
  const uint8_t* const occupied = grid_.occupied(env);
  float sum = 0;
  int counted = 0;
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    if (all_.status[uav] != UavStatus::kArrived) continue;
    const float shortest = shortest_path_.Length(occupied, grid_.stride(), grid_.CellIndex(all_.start[uav]),
                                                 grid_.CellIndex(all_.target[uav]));
    if (!std::isfinite(shortest) || shortest == 0) continue;
    sum += all_.flown[uav] / shortest;
    ++counted;
  }
  return counted > 0 ? sum / static_cast<float>(counted) : 0;
}

void UavWorld::EpisodeMetrics(int env, float* metrics) const {
  const auto begin = all_.status.begin() + size_t(env) * uavs_, end = begin + uavs_;
  const float uavs = static_cast<float>(uavs_);
  const float arrived = static_cast<float>(std::count(begin, end, UavStatus::kArrived));
  const float crashed = static_cast<float>(std::count(begin, end, UavStatus::kCrashed));
  const float visited = static_cast<float>(grid_.free(env) - grid_.left_to_visit(env));
  const float separation = separation_squared_[env];
  const bool navigate = task_ == UavTask::kNavigate;
  if (navigate) *metrics++ = arrived / uavs;
  *metrics++ = crashed / uavs;
  *metrics++ = visited / static_cast<float>(std::max(1, grid_.free(env)));
  if (navigate) *metrics++ = MeanPathRatio(env);
  *metrics = separation < std::numeric_limits<float>::max() ? std::sqrt(separation) : 0;
}

}  // namespace skein
