// SPDX-License-Identifier: Apache-2.0
#include "env/uav/shortest_path.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numbers>

namespace skein {
namespace {

constexpr int kMoves[8][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 1}, {-1, 1}, {-1, -1}, {1, -1}};

double LengthOf(int straight, int diagonal) { return straight + diagonal * std::numbers::sqrt2; }

}  // namespace

ShortestPath::ShortestPath(int cells) : reached_(cells) {
  // A cell is left once, and so entered at most eight times.
  open_.reserve(8 * static_cast<size_t>(cells) + 1);
}

float ShortestPath::Length(const uint8_t* occupied, int stride, int from, int to) {
  const auto farther = [](const Entry& a, const Entry& b) { return a.bound > b.bound; };
  const auto without_obstacles = [stride, to](int cell) {
    const int dx = std::abs(cell % stride - to % stride), dy = std::abs(cell / stride - to / stride);
    return LengthOf(std::abs(dx - dy), std::min(dx, dy));
  };
  if (++search_ == 0) {  // The counter has wrapped around.
    std::fill(reached_.begin(), reached_.end(), Reached{});
    search_ = 1;
  }
  open_.clear();
  reached_[from] = {0, 0, search_, false};
  open_.push_back({without_obstacles(from), from});
  while (!open_.empty()) {
    std::pop_heap(open_.begin(), open_.end(), farther);
    const int cell = open_.back().cell;
    open_.pop_back();
    Reached& here = reached_[cell];
    if (here.done) continue;
    here.done = true;
    if (cell == to) return static_cast<float>(LengthOf(here.straight, here.diagonal));
    for (const auto& [dx, dy] : kMoves) {
      const int next = cell + dx + dy * stride;
      if (occupied[next] != 0) continue;
      const bool diagonal = dx != 0 && dy != 0;
      if (diagonal && (occupied[cell + dx] != 0 || occupied[cell + dy * stride] != 0)) continue;
      const int straights = here.straight + !diagonal, diagonals = here.diagonal + diagonal;
      Reached& there = reached_[next];
      if (there.search == search_ &&
          (there.done || LengthOf(there.straight, there.diagonal) <= LengthOf(straights, diagonals))) {
        continue;
      }
      there = {straights, diagonals, search_, false};
      open_.push_back({LengthOf(straights, diagonals) + without_obstacles(next), next});
      std::push_heap(open_.begin(), open_.end(), farther);
    }
  }
  return std::numeric_limits<float>::infinity();
}

}  // namespace skein
