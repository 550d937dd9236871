// SPDX-License-Identifier: Apache-2.0
#include "tests/env/uav_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace skein {
namespace {

constexpr float kNone = std::numeric_limits<float>::max();

float Squared(float x, float y) { return x * x + y * y; }

}  // namespace

bool UavOracle::Occupied(Cell cell) const {
  const auto [i, j] = cell;
  return i < 0 || j < 0 || i >= options_.size || j >= options_.size || obstacles_.count(cell) > 0;
}

void UavOracle::Reset(RandomStream& random) {
  const int size = options_.size;
  std::vector<uint64_t> keys;
  for (int cell = 0; cell < size * size; ++cell) keys.push_back(uint64_t{random.NextUint32()} * 65536 + cell);
  std::sort(keys.begin(), keys.end());
  obstacles_.clear();
  visited_.clear();
  uavs_.assign(options_.uavs, Uav{});
  steps_ = 0;
  smallest_ = kNone;
  for (int m = 0; m < options_.obstacles; ++m) {
    const int cell = static_cast<int>(keys[m] % 65536);
    obstacles_.insert({cell % size, cell / size});
  }
  for (int n = 0; n < options_.uavs; ++n) {
    Uav& uav = uavs_[n];
    uav.start = uav.target = static_cast<int>(keys[options_.obstacles + n] % 65536);
    if (Navigate()) uav.target = static_cast<int>(keys[options_.obstacles + options_.uavs + n] % 65536);
    uav.x = static_cast<float>(uav.start % size) + 0.5f;
    uav.y = static_cast<float>(uav.start / size) + 0.5f;
    visited_.insert({uav.start % size, uav.start / size});
  }
  for (const Uav& a : uavs_) {
    for (const Uav& b : uavs_) {
      if (&a != &b) smallest_ = std::min(smallest_, Squared(a.x - b.x, a.y - b.y));
    }
  }
}

bool UavOracle::HitsStatic(float x, float y) const {
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const float f = x - static_cast<float>(i), g = y - static_cast<float>(j), r = Radius();
  int hx = 0, hy = 0;
  float ex = 0, ey = 0;
  if (f < r) {
    hx = -1;
    ex = f;
  } else if (1 - f < r) {
    hx = 1;
    ex = 1 - f;
  }
  if (g < r) {
    hy = -1;
    ey = g;
  } else if (1 - g < r) {
    hy = 1;
    ey = 1 - g;
  }
  if (Occupied({i, j})) return true;
  if (hx != 0 && Occupied({i + hx, j})) return true;
  if (hy != 0 && Occupied({i, j + hy})) return true;
  return hx != 0 && hy != 0 && Squared(ex, ey) < r * r && Occupied({i + hx, j + hy});
}

bool UavOracle::HitsOnTheWay(float x, float y, float vx, float vy) const {
  const float end_x = x + vx, end_y = y + vy;
  if (HitsStatic(x, y) || HitsStatic(end_x, end_y)) return true;
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const float f = x - static_cast<float>(i), g = y - static_cast<float>(j), r = Radius();
  for (int b = -2; b <= 3; ++b) {
    for (int a = -2; a <= 3; ++a) {
      bool of_an_occupied_cell = false;
      for (const Cell& cell : {Cell{i + a - 1, j + b - 1}, {i + a, j + b - 1}, {i + a - 1, j + b}, {i + a, j + b}}) {
        of_an_occupied_cell |= Occupied(cell);
      }
      const float ca = static_cast<float>(a), cb = static_cast<float>(b), squared = Squared(vx, vy);
      const float along = (ca * vx + cb * vy) - (f * vx + g * vy), aside = (ca * vy - cb * vx) - (f * vy - g * vx);
      if (of_an_occupied_cell && 0 < along && along < squared && aside * aside < r * r * squared) return true;
    }
  }
  const int i2 = static_cast<int>(std::floor(end_x)), j2 = static_cast<int>(std::floor(end_y));
  if (i2 == i || j2 == j) return false;
  const float column = i2 > i ? 1 - f : f, row = j2 > j ? 1 - g : g;
  const bool column_first = column * std::abs(vy) < row * std::abs(vx);
  return Occupied(column_first ? Cell{i2 > i ? i + 1 : i - 1, j} : Cell{i, j2 > j ? j + 1 : j - 1});
}

float UavOracle::Distance(const Uav& uav) const {
  return std::sqrt(Squared(TargetX(uav) - uav.x, TargetY(uav) - uav.y));
}

bool UavOracle::Step(const std::vector<float>& action, std::vector<float>* reward) {
  const size_t agents = uavs_.size();
  std::vector<bool> part(agents), crashed(agents), arrived(agents);
  std::vector<float> before(agents), own(agents);
  std::map<Cell, int> came;
  for (size_t n = 0; n < agents; ++n) {
    Uav& uav = uavs_[n];
    part[n] = uav.IsAlive();
    if (!part[n]) continue;
    before[n] = Distance(uav);
    if (options_.continuous) {
      float ax = action[2 * n], ay = action[2 * n + 1];
      if (Squared(ax, ay) > 1) {
        const float length = std::sqrt(Squared(ax, ay));
        ax /= length;
        ay /= length;
      }
      uav.vx = Speed() * ax;
      uav.vy = Speed() * ay;
    } else {
      const float s = 0.70710678f;
      const float table[9][2] = {{0, 0}, {1, 0}, {s, s}, {0, 1}, {-s, s}, {-1, 0}, {-s, -s}, {0, -1}, {s, -s}};
      const int choice = static_cast<int>(action[n]);
      uav.vx = Speed() * table[choice][0];
      uav.vy = Speed() * table[choice][1];
    }
    uav.from_x = uav.x;
    uav.from_y = uav.y;
    uav.x += uav.vx;
    uav.y += uav.vy;
    uav.flown += std::sqrt(Squared(uav.vx, uav.vy));
    crashed[n] = HitsOnTheWay(uav.from_x, uav.from_y, uav.vx, uav.vy);
  }
  const float diameter = 2 * Radius();
  for (size_t a = 0; a < agents; ++a) {
    for (size_t b = 0; b < agents; ++b) {
      if (a == b || !part[a] || !part[b]) continue;
      const Uav &first = uavs_[a], &second = uavs_[b];
      const float dx = second.from_x - first.from_x, dy = second.from_y - first.from_y;
      const float wx = second.vx - first.vx, wy = second.vy - first.vy;
      float q = std::min(Squared(dx, dy), Squared(second.x - first.x, second.y - first.y));
      const float along = -(dx * wx + dy * wy), aside = dx * wy - dy * wx, squared = Squared(wx, wy);
      if (0 < along && along < squared) q = std::min(q, aside * aside / squared);
      smallest_ = std::min(smallest_, q);
      if (q < diameter * diameter) crashed[a] = crashed[b] = true;
    }
  }
  for (size_t n = 0; n < agents; ++n) {
    if (!part[n] || crashed[n]) continue;
    const Uav& uav = uavs_[n];
    arrived[n] = Navigate() && Squared(TargetX(uav) - uav.x, TargetY(uav) - uav.y) < 0.25f;
    const Cell cell = {static_cast<int>(uav.x), static_cast<int>(uav.y)};
    if (Unvisited(cell)) ++came[cell];
  }
  float sum = 0;
  for (size_t n = 0; n < agents; ++n) {
    Uav& uav = uavs_[n];
    if (!part[n]) continue;
    if (Navigate()) {
      own[n] = static_cast<float>(options_.progress_reward) * (before[n] - Distance(uav));
      if (arrived[n]) own[n] += static_cast<float>(options_.target_reward);
    } else if (const auto cell = came.find({static_cast<int>(uav.x), static_cast<int>(uav.y)});
               cell != came.end() && !crashed[n]) {
      own[n] = static_cast<float>(options_.cover_reward) / static_cast<float>(cell->second);
    }
    if (crashed[n]) own[n] -= static_cast<float>(options_.collision_penalty);
    own[n] -= static_cast<float>(options_.step_penalty);
    sum += own[n];
    if (arrived[n]) uav.status = UavStatus::kArrived;
    if (crashed[n]) uav.status = UavStatus::kCrashed;
  }
  for (const auto& [cell, count] : came) visited_.insert(cell);
  ++steps_;
  const float w = static_cast<float>(options_.team_share), mean = sum / static_cast<float>(agents);
  reward->assign(agents, 0);
  for (size_t n = 0; n < agents; ++n) (*reward)[n] = part[n] ? (1 - w) * own[n] + w * mean : w * mean;
  const bool nobody = std::none_of(uavs_.begin(), uavs_.end(), [](const Uav& uav) { return uav.IsAlive(); });
  return nobody || (!Navigate() && static_cast<int>(visited_.size()) == Free());
}

std::vector<float> UavOracle::Observe() const {
  std::vector<float> all;
  const size_t size = MakeUavLayout(task_, options_).obs_size;
  for (const Uav& uav : uavs_) {
    if (!uav.IsAlive()) {
      all.insert(all.end(), size, 0.0f);
      continue;
    }
    const int i = static_cast<int>(uav.x), j = static_cast<int>(uav.y), reach = options_.sensing_radius;
    const float f = uav.x - static_cast<float>(i), g = uav.y - static_cast<float>(j);
    const float left = std::max(0.0f, 1 - static_cast<float>(steps_) / 200);
    all.insert(all.end(), {2 * uav.x / Side() - 1, 2 * uav.y / Side() - 1, 2 * f - 1, 2 * g - 1, uav.vx / Speed(),
                           uav.vy / Speed(), left});
    if (Navigate()) {
      const float dx = TargetX(uav) - uav.x, dy = TargetY(uav) - uav.y, d = Distance(uav);
      all.insert(all.end(), {dx / Side(), dy / Side(), dx / d, dy / d, d / (d + 1)});
    }
    const float s = 0.70710678f;
    for (const auto& [dx, dy] :
         std::vector<std::pair<float, float>>{{1, 0}, {s, s}, {0, 1}, {-s, s}, {-1, 0}, {-s, -s}, {0, -1}, {s, -s}}) {
      all.push_back(HitsOnTheWay(uav.x, uav.y, Speed() * dx, Speed() * dy) ? 1 : 0);
    }
    for (const bool unvisited : {false, true}) {
      if (unvisited && Navigate()) continue;
      for (int b = -reach; b <= reach; ++b) {
        for (int a = -reach; a <= reach; ++a) {
          const Cell cell = {i + a, j + b};
          all.push_back((unvisited ? Unvisited(cell) : Occupied(cell)) ? 1 : 0);
        }
      }
    }
    const float r = static_cast<float>(reach);
    std::vector<std::pair<float, size_t>> near;
    for (size_t n = 0; n < uavs_.size(); ++n) {
      const float q = Squared(uavs_[n].x - uav.x, uavs_[n].y - uav.y);
      if (&uavs_[n] != &uav && uavs_[n].IsAlive() && q <= r * r) near.push_back({q, n});
    }
    std::sort(near.begin(), near.end());
    for (int k = 0; k < options_.neighbours; ++k) {
      if (k >= static_cast<int>(near.size())) {
        all.insert(all.end(), 5, 0.0f);
        continue;
      }
      const Uav& other = uavs_[near[k].second];
      all.insert(all.end(), {(other.x - uav.x) / r, (other.y - uav.y) / r, (other.vx - uav.vx) / Speed(),
                             (other.vy - uav.vy) / Speed(), 1});
    }
  }
  return all;
}

std::vector<float> UavOracle::TeamFigures() const {
  std::vector<float> sum(7);
  const float reach = static_cast<float>(options_.sensing_radius);
  for (const Uav& uav : uavs_) {
    sum[1] += uav.status == UavStatus::kCrashed ? 1 : 0;
    sum[2] += uav.status == UavStatus::kArrived ? 1 : 0;
    if (!uav.IsAlive()) continue;
    sum[0] += 1;
    sum[3] += Distance(uav) / Side();
    sum[4] += Distance(uav) / (Distance(uav) + 1);
    for (const Uav& other : uavs_) {
      const float q = Squared(other.x - uav.x, other.y - uav.y);
      if (&other == &uav || !other.IsAlive()) continue;
      if (q <= reach * reach) sum[5] += 0.5f;
      if (q <= reach * reach / 4) sum[6] += 0.5f;
    }
  }
  for (float& figure : sum) figure /= static_cast<float>(uavs_.size());
  return sum;
}

std::vector<float> UavOracle::GlobalState() const {
  const float time_left = std::max(0.0f, 1 - static_cast<float>(steps_) / 200);
  if (Navigate()) {
    std::vector<float> team = TeamFigures();
    team.push_back(time_left);
    return team;
  }
  std::vector<float> state;
  for (const Uav& uav : uavs_) {
    if (!uav.IsAlive()) {
      state.insert(state.end(), 5, 0.0f);
      continue;
    }
    state.insert(state.end(), {1, 2 * uav.x / Side() - 1, 2 * uav.y / Side() - 1, uav.vx / Speed(), uav.vy / Speed()});
  }
  state.push_back(time_left);
  const int size = options_.size, blocks = std::min(10, size);
  for (const bool unvisited : {false, true}) {
    std::vector<float> share(blocks * blocks), cells(blocks * blocks);
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) {
        const int block = j * blocks / size * blocks + i * blocks / size;
        ++cells[block];
        if (unvisited ? Unvisited({i, j}) : Occupied({i, j})) ++share[block];
      }
    }
    for (size_t block = 0; block < share.size(); ++block) state.push_back(share[block] / cells[block]);
  }
  return state;
}

double UavOracle::ShortestWay(int from, int to) const {
  // Bellman and Ford: as often as anything changes.
  const int size = options_.size;
  std::vector<double> length(size * size, std::numeric_limits<double>::infinity());
  length[from] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (int cell = 0; cell < size * size; ++cell) {
      const int i = cell % size, j = cell / size;
      for (int b = -1; b <= 1; ++b) {
        for (int a = -1; a <= 1; ++a) {
          if (Occupied({i + a, j + b}) || Occupied({i + a, j}) || Occupied({i, j + b})) continue;
          const double longer = length[cell] + std::sqrt(a * a + b * b);
          double& there = length[(j + b) * size + i + a];
          if (longer >= there - 1e-9) continue;
          there = longer;
          changed = true;
        }
      }
    }
  }
  return length[to];
}

std::vector<float> UavOracle::Metrics() const {
  float arrived = 0, crashed = 0, ratios = 0, counted = 0;
  for (const Uav& uav : uavs_) {
    if (uav.status == UavStatus::kCrashed) ++crashed;
    if (uav.status != UavStatus::kArrived) continue;
    ++arrived;
    const double way = ShortestWay(uav.start, uav.target);
    if (std::isinf(way)) continue;
    ratios += uav.flown / static_cast<float>(way);
    ++counted;
  }
  const float all = static_cast<float>(uavs_.size());
  const float coverage = static_cast<float>(visited_.size()) / static_cast<float>(Free());
  const float separation = smallest_ == kNone ? 0 : std::sqrt(smallest_);
  if (!Navigate()) return {crashed / all, coverage, separation};
  return {arrived / all, crashed / all, coverage, counted > 0 ? ratios / counted : 0, separation};
}

std::vector<double> UavOracle::SaveState() const {
  std::vector<double> state = {static_cast<double>(steps_), double{smallest_}};
  const int size = options_.size;
  for (const std::set<Cell>& cells : {obstacles_, visited_}) {
    std::vector<double> words((size * size + 31) / 32);
    for (const auto& [i, j] : cells) words[(j * size + i) / 32] += std::exp2((j * size + i) % 32);
    state.insert(state.end(), words.begin(), words.end());
  }
  for (const Uav& uav : uavs_) {
    state.insert(state.end(),
                 {double{uav.x}, double{uav.y}, double{uav.vx}, double{uav.vy}, static_cast<double>(uav.status),
                  double{uav.flown}, double(uav.start), double(uav.target)});
  }
  return state;
}

}  // namespace skein
